import type { Db } from '../../platform/db/db.ts'
import { activityTopic, relayActivity } from '../control/activity/relay.ts'
import { relayDisabledEndpoints, relayEndpointHealth } from '../control/endpoints/health.ts'
import { dueProjectStats, relayProjectStats } from '../control/reputation/project-stats.ts'
import type { OutboxHandler, Write } from './handler.ts'
import { deleteMailRows, selectMailRows, tryReadLock } from './outbox.sql.ts'

// Relays changes of the mail side to control (mail.outbox).
//
// No transaction writes both schemas. The current state is read in a transaction of the mail side and written in one of
// control; only then are the rows deleted. Messages carry full state, not deltas, and the time it was read, so duplicates
// and reordering are harmless. After a crash, the rows are relayed again.

export interface RelayDeps {
  /** Has the administrative role. */
  db: Db
  mailDb: Db
  /** The shards of this cell; undefined: all. */
  shards?: readonly number[] | undefined
}

const handlers: Record<string, OutboxHandler> = {
  'project.stats_changed': relayProjectStats,
  'endpoint.stats_changed': relayEndpointHealth,
  'endpoint.disabled': relayDisabledEndpoints,
  [activityTopic]: relayActivity,
}

/** Limits of one call: rows of the outbox, and projects whose score is due to be recomputed. */
const rowsAtMost = 1000
const dueAtMost = 200

/** `isMore`: call again at once. */
export async function relayToControl({
  db,
  mailDb,
  shards,
}: RelayDeps): Promise<{ relayed: number; isMore: boolean }> {
  const due = await db.read((tx) => dueProjectStats(tx, dueAtMost, shards))
  const reading = await mailDb.read(async (tx) => {
    if (!(await tryReadLock(tx))) return undefined
    const rows = await selectMailRows(tx, Object.keys(handlers), rowsAtMost)
    const writes: Write[] = []
    // Handlers read after the rows were read, so they see the changes that the rows announce.
    for (const [topic, asked] of Map.groupBy([...rows, ...due], (row) => row.topic)) {
      const handler = handlers[topic]
      if (handler) writes.push(await handler(tx, asked))
    }
    return { rows, writes }
  })
  if (!reading) return { relayed: 0, isMore: false }
  let relayed = 0
  let finished = 0
  for (const write of reading.writes) {
    const outcome = await db.transaction(write)
    if (outcome.done.length > 0) await mailDb.transaction((tx) => deleteMailRows(tx, outcome.done))
    relayed += outcome.relayed
    finished += outcome.done.length
  }
  // Rows that could not be relayed now come first in the next call again, so without progress it waits a second.
  const isMore =
    (reading.rows.length === rowsAtMost && finished > 0) || (due.length === dueAtMost && relayed > 0)
  return { relayed, isMore }
}
