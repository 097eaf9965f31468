import { sql } from 'kysely'
import type { Db, Tx } from '../../../platform/db/db.ts'

/** If no worker has run for longer than this, mail is rejected because its partition does not exist. */
const aheadDays = 14

/**
 * Creates and drops the partitions for messages, bodies, recipients, attempts and events; see
 * mail.maintain_partitions.
 */
export async function keepPartitions(
  tx: Tx,
  retentionDays: number,
): Promise<{ made: number; dropped: number }> {
  const { rows } = await sql<{ made: number; dropped: number }>`
    select made, dropped from mail.maintain_partitions(${aheadDays}, ${retentionDays})`.execute(tx)
  return rows[0] ?? { made: 0, dropped: 0 }
}

/**
 * Limits per step, to keep transactions short, and per run. The next run continues where this one stopped.
 */
const stepRows = 5_000
const stepBytes = 64 * 1024 * 1024
const runMs = 30_000

interface Step {
  part: string
  moved: number
  dropped: boolean | null
  last_shard: number | null
  last_message: string | null
}

/** Deletes the bodies of messages that were sent or failed, day by day, in steps; see mail.drop_bodies. */
export async function dropBodies(
  db: Db,
  retentionHours: number,
): Promise<{ moved: number; dropped: string[] }> {
  const done = { moved: 0, dropped: [] as string[] }
  const end = performance.now() + runMs
  for (let last: Step | undefined; performance.now() < end; ) {
    last = await db.transaction((tx) => dropStep(tx, retentionHours, last))
    if (!last || last.dropped === null) break
    done.moved += last.moved
    if (last.dropped) done.dropped.push(last.part)
  }
  return done
}

async function dropStep(tx: Tx, retentionHours: number, before: Step | undefined): Promise<Step | undefined> {
  const { rows } = await sql<Step>`
    select * from mail.drop_bodies(${retentionHours}, ${stepRows}, ${stepBytes}, ${before?.part ?? null},
                                   ${before?.last_shard ?? null}::smallint, ${before?.last_message ?? null}::uuid)`.execute(
    tx,
  )
  return rows[0]
}
