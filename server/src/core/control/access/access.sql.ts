import { createHash } from 'node:crypto'
import type { JWK } from 'jose'
import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

/** What a request needs to know about the user behind a token; one query, on every request. */
const columns = ['users.id', 'users.email', 'users.name', 'users.role', 'users.is_active'] as const

export interface TokenSubject {
  userId: number
  sessionId: number | undefined
  generation: number
}

/**
 * The user that one of our own tokens names, while its generation and its session live. A token without a
 * session comes from the server's own shell, which counts as a second factor.
 */
export function findTokenUser(tx: ReadTx, { userId, sessionId, generation }: TokenSubject) {
  const query = tx
    .selectFrom('control.users as users')
    .where('users.id', '=', userId)
    .where('users.token_generation', '=', generation)
  if (sessionId === undefined) {
    return query.select([...columns, sql<boolean>`true`.as('has_second_factor')]).executeTakeFirst()
  }
  return query
    .innerJoin('control.sessions as sessions', 'sessions.user_id', 'users.id')
    .where('sessions.id', '=', sessionId)
    .where('sessions.expires_at', '>', sql<Date>`postern.now()`)
    .select([...columns, sql<boolean>`sessions.second_factor_at is not null`.as('has_second_factor')])
    .executeTakeFirst()
}

/**
 * The user pinned to an outside issuer's (iss, sub). Such a token carries no generation, so one issued
 * before (or in the same second as) the last end of the user's sessions is refused by its time.
 */
export function findExternalUser(tx: ReadTx, issuer: string, subject: string, issuedAt: Date) {
  return (
    tx
      .selectFrom('control.external_logins as logins')
      .innerJoin('control.users as users', 'users.id', 'logins.user_id')
      // How its users prove who they are is the issuer's business.
      .select([...columns, sql<boolean>`true`.as('has_second_factor')])
      .where('logins.issuer', '=', issuer)
      .where('logins.subject', '=', subject)
      .where(({ eb, or }) =>
        or([eb('users.token_generation', '=', 1), eb('users.token_generation_at', '<', issuedAt)]),
      )
      .executeTakeFirst()
  )
}

/** Private halves of the same, as they are kept. */
export async function listSealedSigningKeys(tx: ReadTx): Promise<{ id: number; private_key: string }[]> {
  return tx.selectFrom('control.signing_keys').select(['id', 'private_key']).orderBy('id').execute()
}

/** Public halves of the keys that sign, or lately signed, access tokens. */
export async function listSigningKeys(tx: ReadTx, graceSeconds: number): Promise<JWK[]> {
  const rows = await tx
    .selectFrom('control.signing_keys')
    .select(['id', 'alg', 'public_key'])
    .where(
      sql<boolean>`expires_at is null or expires_at + make_interval(secs => ${graceSeconds}) > postern.now()`,
    )
    .orderBy('id')
    .execute()
  return rows.map(({ id, alg, public_key }) => ({
    ...(JSON.parse(public_key) as JWK),
    kid: String(id),
    alg: alg ?? 'EdDSA',
    use: 'sig',
  }))
}

/** A user as the signin plane needs them; by id from a session, or by email at the server's own shell. */
export function findSignInUser(tx: ReadTx, by: { id: number } | { email: string }) {
  return tx
    .selectFrom('control.users')
    .select(['id', 'email', 'name', 'role', 'is_active', 'token_generation', 'two_factor_enabled'])
    .where((eb) => ('id' in by ? eb('id', '=', by.id) : eb('email', '=', by.email)))
    .executeTakeFirst()
}

export function listSessions(tx: ReadTx, userId: number) {
  return tx
    .selectFrom('control.sessions')
    .select(['id', 'created_at', 'expires_at', 'second_factor_at', 'ip_address', 'user_agent'])
    .where('user_id', '=', userId)
    .where('expires_at', '>', sql<Date>`postern.now()`)
    .orderBy('id', 'desc')
    .execute()
}

export async function deleteSession(tx: Tx, userId: number, sessionId: number): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('control.sessions')
    .where('user_id', '=', userId)
    .where('id', '=', sessionId)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/** As Better Auth keeps it. */
export async function insertPassword(tx: Tx, userId: number, hash: string): Promise<void> {
  await tx
    .insertInto('control.accounts')
    .values({ user_id: userId, account_id: String(userId), provider_id: 'credential', password: hash })
    .execute()
}

/** Undefined when the address is taken. */
export function insertAdministrator(tx: Tx, email: string, name: string) {
  return tx
    .insertInto('control.users')
    .values({ email, name, role: 'admin', email_verified: true })
    .onConflict((conflict) => conflict.column('email').doNothing())
    .returning('id')
    .executeTakeFirst()
}

/** Every token made before is dead after this. */
export async function makeAdministrator(tx: Tx, userId: number): Promise<void> {
  await tx
    .updateTable('control.users')
    .set((eb) => ({
      role: 'admin',
      is_active: true,
      token_generation: eb('token_generation', '+', 1),
      token_generation_at: sql<Date>`postern.now()`,
      version: eb('version', '+', 1),
      updated_at: sql<Date>`postern.now()`,
    }))
    .where('id', '=', userId)
    .execute()
}

/** Sessions opened before there was a second factor to give. */
export async function deletePasswordOnlySessions(tx: Tx, userId: number): Promise<void> {
  await tx
    .deleteFrom('control.sessions')
    .where('user_id', '=', userId)
    .where('second_factor_at', 'is', null)
    .execute()
}

/** Sign-ins that wait for their second factor: the password they began with counts no longer. */
export async function deleteChallenges(tx: Tx, userId: number): Promise<void> {
  await tx
    .deleteFrom('control.verifications')
    .where('value', '=', String(userId))
    .where('identifier', 'like', '2fa-%')
    .execute()
}

/** Whose sign-in an attempt is that waits for its second factor. */
export async function findChallenged(tx: ReadTx, identifier: string): Promise<number | undefined> {
  const row = await tx
    .selectFrom('control.verifications')
    .select('value')
    .where('identifier', '=', identifier)
    .where('expires_at', '>', sql<Date>`postern.now()`)
    .executeTakeFirst()
  const id = Number(row?.value)
  return Number.isSafeInteger(id) ? id : undefined
}

/** Links that were asked for by whoever reads the user's mail, or made at the shell. */
export async function deleteResets(tx: Tx, userId: number): Promise<void> {
  await tx.deleteFrom('control.password_resets').where('user_id', '=', userId).execute()
}

export async function forgetCredentials(tx: Tx, userId: number): Promise<void> {
  await deleteChallenges(tx, userId)
  await deleteResets(tx, userId)
  await tx.deleteFrom('control.sessions').where('user_id', '=', userId).execute()
  await tx.deleteFrom('control.two_factors').where('user_id', '=', userId).execute()
  await tx.deleteFrom('control.accounts').where('user_id', '=', userId).execute()
  await tx.updateTable('control.users').set({ two_factor_enabled: false }).where('id', '=', userId).execute()
}

/** The TOTP seed was handed over at the shell; the session that made it has done its work. */
export async function confirmTotp(tx: Tx, userId: number): Promise<void> {
  await tx.updateTable('control.two_factors').set({ verified: true }).where('user_id', '=', userId).execute()
  await tx.updateTable('control.users').set({ two_factor_enabled: true }).where('id', '=', userId).execute()
  await tx.deleteFrom('control.sessions').where('user_id', '=', userId).execute()
}

/** With the user when the link is new. */
export async function linkLogin(
  tx: Tx,
  email: string,
  issuer: string,
  subject: string,
): Promise<{
  outcome: 'linked' | 'no such user' | 'taken'
  user?: { id: number; email: string; name: string } | undefined
}> {
  const user = await tx
    .selectFrom('control.users')
    .select(['id', 'email', 'name'])
    .where('email', '=', email)
    .executeTakeFirst()
  if (!user) return { outcome: 'no such user' }
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('control.external_logins')
    .values({ issuer, subject, user_id: user.id })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  if (numInsertedOrUpdatedRows === 1n) return { outcome: 'linked', user }
  const login = await tx
    .selectFrom('control.external_logins')
    .select('user_id')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst()
  return { outcome: login?.user_id === user.id ? 'linked' : 'taken' }
}

/** False when this user has given the code before. Codes are valid for 90 seconds; the rows need live no longer. */
export async function useTotpCode(tx: Tx, userId: number, code: string): Promise<boolean> {
  await tx
    .deleteFrom('control.used_totp_codes')
    .where('user_id', '=', userId)
    .where('used_at', '<', sql<Date>`postern.now() - interval '5 minutes'`)
    .execute()
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('control.used_totp_codes')
    .values({ user_id: userId, code_hash: createHash('sha256').update(code).digest() })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return numInsertedOrUpdatedRows === 1n
}

/** The function deletes as its owner: no plane's role may read all of these. */
export async function deleteEnded(tx: Tx, atMost: number): Promise<number> {
  const { rows } = await sql<{ gone: number }>`select control.purge_sign_ins(${atMost}) as gone`.execute(tx)
  return rows[0]?.gone ?? 0
}
