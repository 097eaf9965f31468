import { sql } from 'kysely'
import type { Tx } from '../../platform/db/db.ts'

/** A worker that is away for longer than this stops acceptance: there would be nowhere to put mail. */
const aheadDays = 14

/** Of messages, bodies, recipients, attempts and events; see mail.keep_partitions. */
export async function keepPartitions(tx: Tx, keptDays: number): Promise<{ made: number; dropped: number }> {
  const { rows } = await sql<{ made: number; dropped: number }>`
    select made, dropped from mail.keep_partitions(${aheadDays}, ${keptDays})`.execute(tx)
  return rows[0] ?? { made: 0, dropped: 0 }
}
