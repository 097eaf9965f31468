import type { UnscopedDb } from '../../platform/db/db.ts'
import { activityTopic, relayActivity } from '../control/activity/relay.ts'
import { relayDisabledEndpoints, relayEndpointHealth } from '../control/endpoints/health.ts'
import { dueProjectStats, relayProjectStats } from '../control/reputation/project-stats.ts'
import type { OutboxHandler, Write } from './handler.ts'
import { deleteMailRows, hasMailRows, selectMailRows, tryReadLock } from './outbox.sql.ts'

// Relays changes from the mail database to the control database, through mail.outbox.
//
// No transaction writes both schemas. The current state is read in a transaction in the mail database and written in a
// transaction in the control database. Only then are the rows deleted. Messages carry the full state, not deltas, and the
// time at which the state was read, so duplicates and reordering are harmless. After a crash, the rows are relayed again.

export interface RelayDeps {
  /** Connected with the administrative role. */
  db: UnscopedDb
  mailDb: UnscopedDb
  /** This cell's shards, or undefined for all shards. */
  shards?: readonly number[] | undefined
}

const handlers: Record<string, OutboxHandler> = {
  'project.stats_changed': relayProjectStats,
  'endpoint.stats_changed': relayEndpointHealth,
  'endpoint.disabled': relayDisabledEndpoints,
  [activityTopic]: relayActivity,
}

/** Limits per call: outbox rows, and projects whose score is due for recalculation. */
const rowsAtMost = 1000
const dueAtMost = 200

/** `isMore`: call again immediately. `isEmpty`: there was nothing to relay. */
export async function relayToControl({
  db,
  mailDb,
  shards,
}: RelayDeps): Promise<{ relayed: number; isMore: boolean; isEmpty: boolean }> {
  const due = await db.readOne((tx) => dueProjectStats(tx, dueAtMost, shards))
  if (due.length === 0 && !(await mailDb.readOne(hasMailRows))) {
    return { relayed: 0, isMore: false, isEmpty: true }
  }
  const reading = await mailDb.read(async (tx) => {
    if (!(await tryReadLock(tx))) return undefined
    const rows = await selectMailRows(tx, Object.keys(handlers), rowsAtMost)
    const writes: Write[] = []
    // Handlers read the state after the rows were read, so they see the changes that the rows refer to.
    for (const [topic, topicRows] of Map.groupBy([...rows, ...due], (row) => row.topic)) {
      const handler = handlers[topic]
      if (handler) writes.push(await handler(tx, topicRows))
    }
    return { rows, writes }
  })
  if (!reading) return { relayed: 0, isMore: false, isEmpty: false }
  let relayed = 0
  let finished = 0
  for (const write of reading.writes) {
    const outcome = await db.transaction(write)
    if (outcome.done.length > 0) await mailDb.transaction((tx) => deleteMailRows(tx, outcome.done))
    relayed += outcome.relayed
    finished += outcome.done.length
  }
  // Rows that could not be relayed come first again in the next call. If there was no progress, wait a second.
  const isMore =
    (reading.rows.length === rowsAtMost && finished > 0) || (due.length === dueAtMost && relayed > 0)
  return { relayed, isMore, isEmpty: false }
}
