import { sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'

/** The maximum number of sign-ups waiting for the worker. */
const waitingAtMost = 1_000

/**
 * A sign-up, and the mail that answers it. If the address has an account, no password is stored. Nothing is written while too
 * many sign-ups wait for their mail.
 */
export async function insertSignUp(
  tx: Tx,
  { email, name, password, hours }: { email: string; name: string; password: string; hours: number },
): Promise<void> {
  await sql`
    with account as (select (select id from control.users where email = ${email}) as user_id),
    requested as (
      insert into control.sign_ups (email, name, user_id, password_hash, expires_at)
      select ${email}, ${name}, account.user_id,
             case when account.user_id is null then ${password}::text end,
             postern.now() + make_interval(hours => ${hours})
        from account
       where (select count(*) from (
                select from control.sign_ups where mailed_at is null limit ${waitingAtMost}
              ) as waiting) < ${waitingAtMost}
      returning id, expires_at
    )
    select control.add_system_mail('sign_up', id, null, expires_at) from requested`.execute(tx)
}

export interface RequestedSignUp {
  email: string
  expires_at: Date
  has_account: boolean
}

/** Also marks the sign-up as mailed. Undefined if it has expired or was confirmed. */
export async function findRequested(tx: Tx, id: number): Promise<RequestedSignUp | undefined> {
  const { rows } = await sql<RequestedSignUp>`
    update control.sign_ups set mailed_at = postern.now()
     where id = ${id} and expires_at > postern.now()
    returning email, expires_at, user_id is not null as has_account`.execute(tx)
  return rows[0]
}

export async function storeHash(tx: Tx, id: number, hash: Buffer): Promise<void> {
  await tx.updateTable('control.sign_ups').set({ token_hash: hash }).where('id', '=', id).execute()
}

export interface UsableSignUp {
  email: string
  password_hash: string
}

/** Undefined if the token is invalid, was used or has expired. */
export async function findUsable(tx: ReadTx, hash: Buffer): Promise<UsableSignUp | undefined> {
  const { rows } = await sql<UsableSignUp>`
    select email, password_hash from control.sign_ups
     where token_hash = ${hash} and expires_at > postern.now() and password_hash is not null`.execute(tx)
  return rows[0]
}

/** Undefined if a concurrent request used the token; null if the address has an account. */
export async function createUser(tx: Tx, hash: Buffer): Promise<number | null | undefined> {
  const { rows } = await sql<{ user_id: number | null }>`
    select control.create_signed_up_user(${hash}) as user_id`.execute(tx)
  return rows[0]?.user_id
}

/** Using one link invalidates the others. */
export async function deleteSignUps(tx: Tx, email: string): Promise<void> {
  await tx.deleteFrom('control.sign_ups').where('email', '=', email).execute()
}

export async function deleteExpired(tx: OneStatement, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from control.sign_ups where id in (
      select id from control.sign_ups where expires_at < postern.now() limit ${limit})`.execute(tx)
  return Number(numAffectedRows ?? 0)
}
