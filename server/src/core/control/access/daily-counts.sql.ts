import { sql } from 'kysely'
import type { OneStatement, Tx } from '../../../platform/db/db.ts'

/** What unauthenticated requests and account changes may cause per UTC day. */
export type DailyCount =
  | 'resets of account'
  | 'resets of network'
  | 'sign-ups'
  | 'sign-ups of network'
  | 'sign-ups of address'
  | 'email changes of user'
  | 'email changes of address'

/** Increments today's count and returns it. */
export async function countToday(tx: Tx, kind: DailyCount, key: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`select control.count_today(${kind}, ${key}) as count`.execute(
    tx,
  )
  return rows[0]?.count ?? 0
}

export async function deleteOldCounts(tx: OneStatement, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from control.daily_counts where (kind, key, day) in (
      select kind, key, day from control.daily_counts
       where day < (postern.now() at time zone 'UTC')::date limit ${limit})`.execute(tx)
  return Number(numAffectedRows ?? 0)
}
