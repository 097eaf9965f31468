import { type RawBuilder, sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'
import { deleteResets } from './access.sql.ts'

/** Increments today's count and returns it. */
export async function countToday(
  tx: Tx,
  kind: 'resets of account' | 'resets of network',
  key: string,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`select control.count_today(${kind}, ${key}) as count`.execute(
    tx,
  )
  return rows[0]?.count ?? 0
}

const expiry = (minutes: number): RawBuilder<Date> =>
  sql<Date>`postern.now() + make_interval(mins => ${minutes})`

/**
 * An unauthenticated request. `user_id` is null if the address has no active account with a password. In that case, no link
 * is emailed. Nothing is written while `waitingAtMost` requests are waiting to be emailed.
 */
export async function insertRequest(
  tx: Tx,
  email: string,
  { minutes, waitingAtMost }: { minutes: number; waitingAtMost: number },
): Promise<void> {
  await sql`
    insert into control.password_resets (user_id, expires_at)
    select (select users.id from control.users as users
             where users.email = ${email} and users.is_active
               and exists (select from control.accounts as accounts
                            where accounts.user_id = users.id and accounts.provider_id = 'credential')),
           ${expiry(minutes)}
     where (select count(*) from (
              select from control.password_resets where mailed_at is null limit ${waitingAtMost}
            ) as waiting) < ${waitingAtMost}`.execute(tx)
}

/** Inserts a link that is printed on the command line instead of emailed. */
export async function insertIssued(tx: Tx, userId: number, hash: Buffer, minutes: number): Promise<void> {
  await tx
    .insertInto('control.password_resets')
    .values({
      user_id: userId,
      token_hash: hash,
      mailed_at: sql<Date>`postern.now()`,
      expires_at: expiry(minutes),
    })
    .execute()
}

/** Deletes requests for addresses without an account. */
export async function deleteWithoutAccount(tx: Tx): Promise<void> {
  await tx
    .deleteFrom('control.password_resets')
    .where('user_id', 'is', null)
    .where('mailed_at', 'is', null)
    .execute()
}

export interface UnsentReset {
  id: number
  email: string
  expires_at: Date
}

export async function listUnsent(tx: ReadTx, limit: number): Promise<UnsentReset[]> {
  const { rows } = await sql<UnsentReset>`
    select resets.id, users.email, resets.expires_at
      from control.password_resets as resets join control.users as users on users.id = resets.user_id
     where resets.mailed_at is null and resets.expires_at > postern.now() and users.is_active
     order by resets.id limit ${limit}`.execute(tx)
  return rows
}

/** False if the row was deleted or another worker has already emailed the link. */
export async function storeHash(tx: Tx, id: number, hash: Buffer): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('control.password_resets')
    .set({ token_hash: hash })
    .where('id', '=', id)
    .where('mailed_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export async function markSent(tx: Tx, id: number): Promise<void> {
  await tx
    .updateTable('control.password_resets')
    .set({ mailed_at: sql<Date>`postern.now()` })
    .where('id', '=', id)
    .execute()
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

export async function deleteOldCounts(tx: OneStatement, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from control.daily_counts where (kind, key, day) in (
      select kind, key, day from control.daily_counts
       where day < (postern.now() at time zone 'UTC')::date limit ${limit})`.execute(tx)
  return Number(numAffectedRows ?? 0)
}
