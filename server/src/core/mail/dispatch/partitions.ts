import { sql } from 'kysely'
import type { Db, Tx } from '../../../platform/db/db.ts'

/** A worker that is away for longer than this stops acceptance: there would be nowhere to put mail. */
const aheadDays = 14

/** Of messages, bodies, recipients, attempts and events; see mail.keep_partitions. */
export async function keepPartitions(tx: Tx, keptDays: number): Promise<{ made: number; dropped: number }> {
  const { rows } = await sql<{ made: number; dropped: number }>`
    select made, dropped from mail.keep_partitions(${aheadDays}, ${keptDays})`.execute(tx)
  return rows[0] ?? { made: 0, dropped: 0 }
}

/** Of one step, so that no transaction takes long; and of one round. What is left is for the next. */
const stepRows = 5_000
const stepBytes = 64 * 1024 * 1024
const roundMs = 30_000

interface Step {
  part: string
  moved: number
  dropped: boolean | null
  last_shard: number | null
  last_message: string | null
}

/** Deletes the bodies of mail that has been handed over or given up, day by day, in steps; see mail.drop_bodies. */
export async function dropBodies(db: Db, keptHours: number): Promise<{ moved: number; dropped: string[] }> {
  const done = { moved: 0, dropped: [] as string[] }
  const end = performance.now() + roundMs
  for (let last: Step | undefined; performance.now() < end; ) {
    last = await db.transaction((tx) => dropStep(tx, keptHours, last))
    if (!last || last.dropped === null) break
    done.moved += last.moved
    if (last.dropped) done.dropped.push(last.part)
  }
  return done
}

async function dropStep(tx: Tx, keptHours: number, before: Step | undefined): Promise<Step | undefined> {
  const { rows } = await sql<Step>`
    select * from mail.drop_bodies(${keptHours}, ${stepRows}, ${stepBytes}, ${before?.part ?? null},
                                   ${before?.last_shard ?? null}::smallint, ${before?.last_message ?? null}::uuid)`.execute(
    tx,
  )
  return rows[0]
}
