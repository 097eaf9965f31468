import { createHash } from 'node:crypto'
import type { JWK } from 'jose'
import { sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'
import type { Rights } from '../users/wire.ts'

/** The columns needed to authenticate a request. Every request runs one of these queries. */
const columns = [
  'users.id',
  'users.email',
  'users.name',
  'users.role',
  'users.rights',
  'users.is_active',
] as const

/** Verified outside a session. */
const hasOtherSecondFactor = [
  sql<boolean>`true`.as('has_second_factor'),
  sql<Date | null>`null::timestamptz`.as('second_factor_at'),
] as const

export interface TokenSubject {
  userId: number
  sessionId: number | undefined
  generation: number
}

/**
 * The user whom a Postern token identifies, if the token's generation is current and its session is active. A token without
 * a session was issued on the server's command line. Access to the command line counts as a second factor.
 */
export function findTokenUser(tx: ReadTx, { userId, sessionId, generation }: TokenSubject) {
  const query = tx
    .selectFrom('control.users as users')
    .where('users.id', '=', userId)
    .where('users.token_generation', '=', generation)
  if (sessionId === undefined) {
    return query.select([...columns, ...hasOtherSecondFactor]).executeTakeFirst()
  }
  return query
    .innerJoin('control.sessions as sessions', 'sessions.user_id', 'users.id')
    .where('sessions.id', '=', sessionId)
    .where('sessions.expires_at', '>', sql<Date>`postern.now()`)
    .select([
      ...columns,
      'sessions.second_factor_at',
      sql<boolean>`sessions.second_factor_at is not null`.as('has_second_factor'),
    ])
    .executeTakeFirst()
}

/**
 * The user linked to an external issuer's (iss, sub). The issuer's tokens carry no generation, so a token is rejected unless
 * its `iat` is later than the second in which all of the user's sessions were last revoked.
 */
export function findExternalUser(tx: ReadTx, issuer: string, subject: string, issuedAt: Date) {
  return (
    tx
      .selectFrom('control.external_logins as logins')
      .innerJoin('control.users as users', 'users.id', 'logins.user_id')
      // The external issuer decides how its users authenticate.
      .select([...columns, ...hasOtherSecondFactor])
      .where('logins.issuer', '=', issuer)
      .where('logins.subject', '=', subject)
      .where(({ eb, or }) =>
        or([eb('users.token_generation', '=', 1), eb('users.token_generation_at', '<', issuedAt)]),
      )
      .executeTakeFirst()
  )
}

/** The encrypted private keys. */
export async function listSealedSigningKeys(tx: ReadTx): Promise<{ id: number; private_key: string }[]> {
  return tx.selectFrom('control.signing_keys').select(['id', 'private_key']).orderBy('id').execute()
}

/** The public keys for verifying access tokens, including keys that expired within the grace period. */
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

const selectSignInUser = (tx: ReadTx, by: { id: number } | { email: string }) =>
  tx
    .selectFrom('control.users')
    .select(['id', 'email', 'name', 'role', 'rights', 'is_active', 'token_generation', 'two_factor_enabled'])
    .where((eb) => ('id' in by ? eb('id', '=', by.id) : eb('email', '=', by.email)))

/** Looks up a user for signing in: by the id in a session, or by the email specified on the command line. */
export const findSignInUser = (tx: ReadTx, by: { id: number } | { email: string }) =>
  selectSignInUser(tx, by).executeTakeFirst()

/** Locks the user against changes of the role until the transaction ends. */
export const lockSignInUser = (tx: Tx, by: { id: number } | { email: string }) =>
  selectSignInUser(tx, by).forNoKeyUpdate().executeTakeFirst()

export async function hasPassword(tx: ReadTx, userId: number): Promise<boolean> {
  const row = await tx
    .selectFrom('control.accounts')
    .select('id')
    .where('user_id', '=', userId)
    .where('provider_id', '=', 'credential')
    .where('password', 'is not', null)
    .executeTakeFirst()
  return row !== undefined
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

/** Returns the number of deleted sessions. */
export async function deleteOtherSessions(tx: Tx, userId: number, keptId: number): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom('control.sessions')
    .where('user_id', '=', userId)
    .where('id', '<>', keptId)
    .executeTakeFirst()
  return Number(numDeletedRows)
}

/** Inserts the same row that Better Auth would insert. */
export async function insertPassword(tx: Tx, userId: number, hash: string): Promise<void> {
  await tx
    .insertInto('control.accounts')
    .values({ user_id: userId, account_id: String(userId), provider_id: 'credential', password: hash })
    .execute()
}

/** Undefined if the address already has an account. */
export function insertAdministrator(tx: Tx, email: string, name: string, rights: Rights) {
  return tx
    .insertInto('control.users')
    .values({ email, name, role: 'admin', rights, email_verified: true })
    .onConflict((conflict) => conflict.column('email').doNothing())
    .returning('id')
    .executeTakeFirst()
}

/** Invalidates every token issued so far. */
const invalidateTokens = (tx: Tx, userId: number) =>
  tx
    .updateTable('control.users')
    .set((eb) => ({
      token_generation: eb('token_generation', '+', 1),
      token_generation_at: sql<Date>`postern.now()`,
      version: eb('version', '+', 1),
      updated_at: sql<Date>`postern.now()`,
    }))
    .where('id', '=', userId)

/** Invalidates every token issued so far. */
export async function makeAdministrator(tx: Tx, userId: number, rights: Rights): Promise<void> {
  await invalidateTokens(tx, userId).set({ role: 'admin', rights, is_active: true }).execute()
}

/** Deletes the user's sessions and invalidates every token issued so far. */
export async function endSessions(tx: Tx, userId: number): Promise<void> {
  await tx.deleteFrom('control.sessions').where('user_id', '=', userId).execute()
  await invalidateTokens(tx, userId).execute()
}

/** Deletes sessions that were created before the second factor was set up. */
export async function deletePasswordOnlySessions(tx: Tx, userId: number): Promise<void> {
  await tx
    .deleteFrom('control.sessions')
    .where('user_id', '=', userId)
    .where('second_factor_at', 'is', null)
    .execute()
}

/** Deletes the user's sign-ins that await a second factor. Called when the password is no longer valid. */
export async function deleteChallenges(tx: Tx, userId: number): Promise<void> {
  await tx
    .deleteFrom('control.verifications')
    .where('value', '=', String(userId))
    .where('identifier', 'like', '2fa-%')
    .execute()
}

/** The user whose sign-in awaits a second factor. */
export async function findChallengedUserId(tx: ReadTx, identifier: string): Promise<number | undefined> {
  const row = await tx
    .selectFrom('control.verifications')
    .select('value')
    .where('identifier', '=', identifier)
    .where('expires_at', '>', sql<Date>`postern.now()`)
    .executeTakeFirst()
  const id = Number(row?.value)
  return Number.isSafeInteger(id) ? id : undefined
}

/** Password reset links, requested by email or created on the command line. */
export async function deleteResets(tx: Tx, userId: number): Promise<void> {
  await tx.deleteFrom('control.password_resets').where('user_id', '=', userId).execute()
}

export async function deleteCredentials(tx: Tx, userId: number): Promise<void> {
  await deleteSecondFactor(tx, userId)
  await deleteResets(tx, userId)
  await tx.deleteFrom('control.external_logins').where('user_id', '=', userId).execute()
  await tx.deleteFrom('control.accounts').where('user_id', '=', userId).execute()
}

/** Deletes the authenticator, its backup codes and the passkeys, and what was signed in or is signing in with them. */
export async function deleteSecondFactor(tx: Tx, userId: number): Promise<void> {
  await deleteChallenges(tx, userId)
  await tx.deleteFrom('control.sessions').where('user_id', '=', userId).execute()
  await tx.deleteFrom('control.two_factors').where('user_id', '=', userId).execute()
  await tx.deleteFrom('control.passkeys').where('user_id', '=', userId).execute()
  await tx.updateTable('control.users').set({ two_factor_enabled: false }).where('id', '=', userId).execute()
}

/** Confirms the TOTP secret that was printed on the command line, and revokes the session that created it. */
export async function confirmTotp(tx: Tx, userId: number): Promise<void> {
  await tx.updateTable('control.two_factors').set({ verified: true }).where('user_id', '=', userId).execute()
  await tx.updateTable('control.users').set({ two_factor_enabled: true }).where('id', '=', userId).execute()
  await tx.deleteFrom('control.sessions').where('user_id', '=', userId).execute()
}

/** Returns the user if the link is new. */
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

/** False if this user has no such login. */
export async function unlinkLogin(tx: Tx, userId: number, issuer: string, subject: string): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('control.external_logins')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .where('user_id', '=', userId)
    .executeTakeFirst()
  return numDeletedRows === 1n
}

/** False if the user has used this code before. Codes are valid for 90 seconds; rows older than 5 minutes are deleted. */
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

/** The database function runs as its owner, because no plane's role can access all of these tables. */
export async function deleteEnded(tx: OneStatement, atMost: number): Promise<number> {
  const { rows } = await sql<{
    deleted: number
  }>`select control.purge_sign_ins(${atMost}) as deleted`.execute(tx)
  return rows[0]?.deleted ?? 0
}
