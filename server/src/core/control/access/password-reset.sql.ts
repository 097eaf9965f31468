import { type RawBuilder, sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'
import { deleteResets } from './access.sql.ts'

const expiry = (minutes: number): RawBuilder<Date> =>
  sql<Date>`postern.now() + make_interval(mins => ${minutes})`

/**
 * An unauthenticated request, and the mail that answers it. `user_id` is null if the address has no active account, or that of
 * an administrator who never had a password. In that case, no link is emailed. Nothing is written while `waitingAtMost` requests are waiting to be emailed.
 */
export async function insertRequest(
  tx: Tx,
  email: string,
  { minutes, waitingAtMost }: { minutes: number; waitingAtMost: number },
): Promise<void> {
  await sql`
    with requested as (
      insert into control.password_resets (user_id, expires_at)
      select (select users.id from control.users as users
               where users.email = ${email} and users.is_active
                 and (users.role = 'user'
                      or exists (select from control.accounts as accounts
                                  where accounts.user_id = users.id and accounts.provider_id = 'credential'))),
             ${expiry(minutes)}
       where (select count(*) from (
                select from control.password_resets where token_hash is null limit ${waitingAtMost}
              ) as waiting) < ${waitingAtMost}
      returning id, expires_at
    )
    select control.add_system_mail('password_reset', id, null, expires_at) from requested`.execute(tx)
}

/** Inserts a link that is printed on the command line instead of emailed. */
export async function insertIssued(tx: Tx, userId: number, hash: Buffer, minutes: number): Promise<void> {
  await tx
    .insertInto('control.password_resets')
    .values({ user_id: userId, token_hash: hash, expires_at: expiry(minutes) })
    .execute()
}

export async function deleteWithoutAccount(tx: Tx, id: number): Promise<void> {
  await tx.deleteFrom('control.password_resets').where('id', '=', id).where('user_id', 'is', null).execute()
}

/** Undefined if the link was used or has expired, or its user is disabled. */
export async function findRequested(
  tx: ReadTx,
  id: number,
): Promise<{ email: string; expires_at: Date } | undefined> {
  const { rows } = await sql<{ email: string; expires_at: Date }>`
    select users.email, resets.expires_at
      from control.password_resets as resets join control.users as users on users.id = resets.user_id
     where resets.id = ${id} and resets.expires_at > postern.now() and users.is_active`.execute(tx)
  return rows[0]
}

export async function storeHash(tx: Tx, id: number, hash: Buffer): Promise<void> {
  await tx.updateTable('control.password_resets').set({ token_hash: hash }).where('id', '=', id).execute()
}

/** Undefined if the token is invalid, was used or has expired, or its user is disabled. */
export async function findUsable(tx: ReadTx, hash: Buffer): Promise<number | undefined> {
  const { rows } = await sql<{ user_id: number }>`
    select resets.user_id
      from control.password_resets as resets join control.users as users on users.id = resets.user_id
     where resets.token_hash = ${hash} and resets.expires_at > postern.now() and users.is_active`.execute(tx)
  return rows[0]?.user_id
}

/**
 * Deletes all of the user's links, because using one invalidates the others. False if a concurrent request used the token.
 */
export async function consumeToken(tx: Tx, userId: number, hash: Buffer): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('control.password_resets')
    .where('token_hash', '=', hash)
    .executeTakeFirst()
  await deleteResets(tx, userId)
  return numDeletedRows > 0n
}

export async function setPassword(tx: Tx, userId: number, hash: string): Promise<void> {
  await sql`
    insert into control.accounts (user_id, account_id, provider_id, password)
    values (${userId}, ${String(userId)}, 'credential', ${hash})
    on conflict (provider_id, account_id) do update set password = excluded.password, updated_at = postern.now()`.execute(
    tx,
  )
}

export async function deleteSessionsOf(tx: Tx, userId: number): Promise<void> {
  await tx.deleteFrom('control.sessions').where('user_id', '=', userId).execute()
}

export async function deleteExpired(tx: OneStatement, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from control.password_resets where id in (
      select id from control.password_resets where expires_at < postern.now() limit ${limit})`.execute(tx)
  return Number(numAffectedRows ?? 0)
}
