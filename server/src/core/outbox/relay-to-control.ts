import type { Db } from '../../platform/db/db.ts'
import { activityTopic, relayActivity } from '../control/activity/relay.ts'
import { relayDisabledEndpoints, relayEndpointHealth } from '../control/endpoints/health.ts'
import { dueProjectStats, relayProjectStats } from '../control/reputation/project-stats.ts'
import type { OutboxHandler, Write } from './handler.ts'
import { deleteMailRows, selectMailRows, tryReading } from './outbox.sql.ts'

/**
 * What the mail plane knows, told to control (mail.outbox).
 *
 * No transaction writes both schemas. What rows speak of is read in one of the mail plane's, written in one of
 * control's, and only then the rows are deleted. What is told is a state and not a difference, and carries the moment
 * of its reading, so that telling it twice, or late, does no harm; whoever dies on the way leaves the rows for the next.
 */
export interface RelayDeps {
  /** The administrative role's. */
  db: Db
  mailDb: Db
  /** Of this cell; undefined: all. */
  shards?: readonly number[] | undefined
}

const tellers: Record<string, OutboxHandler> = {
  'project.counted': relayProjectStats,
  'endpoint.told': relayEndpointHealth,
  'endpoint.disabled': relayDisabledEndpoints,
  [activityTopic]: relayActivity,
}

/** In one round: rows of the outbox, and projects that are due again. */
const rowsAtMost = 1000
const dueAtMost = 200

/** How many things were told of, and whether there is more to tell at once. */
export async function relayToControl({
  db,
  mailDb,
  shards,
}: RelayDeps): Promise<{ told: number; isMore: boolean }> {
  const due = await db.read((tx) => dueProjectStats(tx, dueAtMost, shards))
  const reading = await mailDb.read(async (tx) => {
    if (!(await tryReading(tx))) return undefined
    const rows = await selectMailRows(tx, Object.keys(tellers), rowsAtMost)
    const writes: Write[] = []
    // After the rows, so that all that they speak of is in.
    for (const [topic, asked] of Map.groupBy([...rows, ...due], (row) => row.topic)) {
      const tell = tellers[topic]
      if (tell) writes.push(await tell(tx, asked))
    }
    return { rows, writes }
  })
  if (!reading) return { told: 0, isMore: false }
  let told = 0
  let finished = 0
  for (const write of reading.writes) {
    const outcome = await db.transaction(write)
    if (outcome.done.length > 0) await mailDb.transaction((tx) => deleteMailRows(tx, outcome.done))
    told += outcome.told
    finished += outcome.done.length
  }
  // What could not be told now is first in the next round, too: that is for a second later.
  const isMore =
    (reading.rows.length === rowsAtMost && finished > 0) || (due.length === dueAtMost && told > 0)
  return { told, isMore }
}
