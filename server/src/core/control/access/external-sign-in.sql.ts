import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

export interface StartedSignIn {
  stateHash: Buffer
  browserHash: Buffer
  issuerId: string
  nonce: string
  codeVerifier: string
  returnTo: string
  /** For linking. */
  sessionId: number | null
  network: string
}

/**
 * Replaces what this browser has started. Of too many waiting sign-ins, the oldest of the network or of all are dropped: refusing
 * new ones would let a stranger stop everybody's sign-in.
 */
export async function insertStarted(
  tx: Tx,
  { stateHash, browserHash, issuerId, nonce, codeVerifier, returnTo, sessionId, network }: StartedSignIn,
  {
    replaced,
    minutes,
    perNetwork,
    all,
  }: { replaced: Buffer | undefined; minutes: number; perNetwork: number; all: number },
): Promise<void> {
  await sql`
    delete from control.external_sign_ins where state_hash in (
      select state_hash from control.external_sign_ins
       where expires_at < postern.now() or browser_hash = ${replaced ?? null}
       limit 100)`.execute(tx)
  await sql`
    delete from control.external_sign_ins where state_hash in (
      (select state_hash from control.external_sign_ins where network = ${network}
        order by expires_at desc offset ${perNetwork - 1})
      union all
      (select state_hash from control.external_sign_ins order by expires_at desc offset ${all - 1}))`.execute(
    tx,
  )
  await sql`
    insert into control.external_sign_ins
      (state_hash, browser_hash, issuer_id, nonce, code_verifier, return_to, session_id, network, expires_at)
    values (${stateHash}, ${browserHash}, ${issuerId}, ${nonce}, ${codeVerifier}, ${returnTo}, ${sessionId}::bigint, ${network},
            postern.now() + make_interval(mins => ${minutes}))`.execute(tx)
}

export interface TakenSignIn {
  nonce: string
  code_verifier: string
  return_to: string
  session_id: number | null
}

/** Deletes the row, so that it is used once. Undefined if this browser did not start it at this issuer, or too long ago. */
export async function takeStarted(
  tx: Tx,
  stateHash: Buffer,
  browserHash: Buffer,
  issuerId: string,
): Promise<TakenSignIn | undefined> {
  const { rows } = await sql<TakenSignIn>`
    delete from control.external_sign_ins
     where state_hash = ${stateHash} and browser_hash = ${browserHash} and issuer_id = ${issuerId}
       and expires_at > postern.now()
    returning nonce, code_verifier, return_to, session_id`.execute(tx)
  return rows[0]
}

export function findLinkedUser(tx: ReadTx, issuer: string, subject: string) {
  return tx
    .selectFrom('control.external_logins as logins')
    .innerJoin('control.users as users', 'users.id', 'logins.user_id')
    .select(['users.id', 'users.email', 'users.role', 'users.is_active'])
    .where('logins.issuer', '=', issuer)
    .where('logins.subject', '=', subject)
    .executeTakeFirst()
}

export async function hasAccount(tx: ReadTx, email: string): Promise<boolean> {
  const found = await tx
    .selectFrom('control.users')
    .select('id')
    .where('email', '=', email)
    .executeTakeFirst()
  return found !== undefined
}

/** Undefined if the address has an account. */
export async function createExternalUser(
  tx: Tx,
  { issuer, subject, email, name }: { issuer: string; subject: string; email: string; name: string },
): Promise<number | undefined> {
  const { rows } = await sql<{ id: number | null }>`
    select control.create_external_user(${issuer}, ${subject}, ${email}, ${name}) as id`.execute(tx)
  return rows[0]?.id ?? undefined
}

/** The session that started to link a login, if it still exists. Locked against its end until the transaction ends. */
export async function lockSessionUser(tx: Tx, sessionId: number) {
  const { rows } = await sql<{ id: number; email: string; is_active: boolean }>`
    select users.id, users.email, users.is_active
      from control.sessions as sessions join control.users as users on users.id = sessions.user_id
     where sessions.id = ${sessionId} and sessions.expires_at > postern.now()
       for key share of sessions`.execute(tx)
  return rows[0]
}

/** Serializes the changes to the ways in which the user can sign in. */
export async function lockUser(tx: Tx, userId: number): Promise<void> {
  await sql`select from control.users where id = ${userId} for no key update`.execute(tx)
}

/** Undefined if the login is linked already, to whichever account. */
export async function insertLogin(
  tx: Tx,
  login: { issuer: string; subject: string; user_id: number },
): Promise<number | undefined> {
  const row = await tx
    .insertInto('control.external_logins')
    .values(login)
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst()
  return row?.id
}

export function listLogins(tx: ReadTx, userId: number) {
  return tx
    .selectFrom('control.external_logins')
    .select(['id', 'issuer', 'subject', 'created_at'])
    .where('user_id', '=', userId)
    .orderBy('id', 'desc')
    .execute()
}

export async function deleteLogin(tx: Tx, userId: number, id: number): Promise<string | undefined> {
  const row = await tx
    .deleteFrom('control.external_logins')
    .where('user_id', '=', userId)
    .where('id', '=', id)
    .returning('issuer')
    .executeTakeFirst()
  return row?.issuer
}

/** Whether the user can still sign in: with a password, a passkey, or at one of these issuers. */
export async function canSignIn(tx: ReadTx, userId: number, issuers: readonly string[]): Promise<boolean> {
  const { rows } = await sql<{ can: boolean }>`
    select exists (select from control.accounts
                    where user_id = ${userId} and provider_id = 'credential' and password is not null)
        or exists (select from control.passkeys where user_id = ${userId})
        or exists (select from control.external_logins
                    where user_id = ${userId} and issuer = any(${[...issuers]}::text[])) as can`.execute(tx)
  return rows[0]?.can === true
}
