import { sql } from 'kysely'
import type { Db, Tx } from '../../platform/db/db.ts'

/** A worker that is away for longer than this stops acceptance: there would be nowhere to put mail. */
const aheadDays = 14

/** Of messages, bodies, recipients, attempts and events; see mail.keep_partitions. */
export async function keepPartitions(tx: Tx, keptDays: number): Promise<{ made: number; dropped: number }> {
  const { rows } = await sql<{ made: number; dropped: number }>`
    select made, dropped from mail.keep_partitions(${aheadDays}, ${keptDays})`.execute(tx)
  return rows[0] ?? { made: 0, dropped: 0 }
}

/** Of one step, so that no transaction takes long. */
const stepRows = 5_000
const stepBytes = 64 * 1024 * 1024
const stepsAtMost = 200

/** Deletes the bodies of mail that has been handed over or given up, day by day, in steps; see mail.drop_bodies. */
export async function dropBodies(db: Db, keptHours: number): Promise<{ moved: number; dropped: string[] }> {
  const done = { moved: 0, dropped: [] as string[] }
  for (let step = 0; step < stepsAtMost; step++) {
    const did = await db.transaction((tx) => dropStep(tx, keptHours))
    if (!did) break
    done.moved += did.moved
    if (did.dropped !== null) done.dropped.push(did.dropped)
  }
  return done
}

async function dropStep(tx: Tx, keptHours: number) {
  const { rows } = await sql<{ moved: number; dropped: string | null }>`
    select moved, dropped from mail.drop_bodies(${keptHours}, ${stepRows}, ${stepBytes})`.execute(tx)
  return rows[0]
}
