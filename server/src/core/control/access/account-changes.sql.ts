import { sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'

/** The change, and the mail about it. Writes nothing if enough changes of this account were mailed in the last hour. */
export async function insertChange(
  tx: Tx,
  userId: number,
  operation: string,
  { mailedPerHour, days }: { mailedPerHour: number; days: number },
): Promise<void> {
  await sql`
    select control.add_account_change(
      ${userId}, ${operation}, ${mailedPerHour}, make_interval(days => ${days}))`.execute(tx)
}

export interface AccountChange {
  operation: string
  created_at: Date
  /** Further changes are not mailed for now. */
  is_last: boolean
  /** The account's address at the time of the change: the mail must not go to a thief who has changed the address since. */
  email: string
}

export async function findChange(tx: ReadTx, id: number): Promise<AccountChange | undefined> {
  const { rows } = await sql<AccountChange>`
    select changes.operation, changes.created_at, changes.is_last,
           coalesce((select later.old_email from control.email_changes as later
                      where later.user_id = changes.user_id and later.confirmed_at > changes.created_at
                      order by later.confirmed_at limit 1), users.email) as email
      from control.account_changes as changes join control.users as users on users.id = changes.user_id
     where changes.id = ${id}`.execute(tx)
  return rows[0]
}

export async function deleteOld(tx: OneStatement, days: number, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from control.account_changes where id in (
      select id from control.account_changes
       where created_at < postern.now() - make_interval(days => ${days}) limit ${limit})`.execute(tx)
  return Number(numAffectedRows ?? 0)
}
