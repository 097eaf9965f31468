/** Relays customers' changes in the mail database to the project's activity chain, through mail.outbox. */
import type { Tx } from '../../../platform/db/db.ts'
import { idsOf, type OutboxHandler } from '../../outbox/handler.ts'
import { publishToControl } from '../../outbox/outbox.ts'
import { type ActivityEntry, recordRelayedActivity } from './activity.ts'

export const activityTopic = 'activity.recorded'

/** Called in the same transaction as the change. The row reaches the project's chain within seconds. */
export const publishActivity = (tx: Tx, projectId: number, entry: ActivityEntry): Promise<void> =>
  publishToControl(tx, projectId, activityTopic, entry)

/**
 * The number of rows per transaction in the control database. Small, because the transaction locks the heads of the
 * chains.
 */
const rowsAtOnce = 100

export const relayActivity: OutboxHandler = async (_mailTx, rows) => {
  const first = rows.slice(0, rowsAtOnce)
  // Sorted by project: concurrent relays lock the chains in the same order.
  const ordered = first.toSorted((a, b) => a.project_id - b.project_id)
  return async (tx) => {
    for (const { project_id, payload, created_at } of ordered) {
      // PostgreSQL's format: no trailing zeros in the fraction.
      const at = new Date(created_at).toISOString().replace(/\.?0+Z$/, 'Z')
      await recordRelayedActivity(tx, project_id, { ...(payload as ActivityEntry), at })
    }
    return { relayed: first.length, done: idsOf(first) }
  }
}
