import type { Tx } from '../../../platform/db/db.ts'
import { idsOf, type OutboxHandler } from '../../outbox/handler.ts'
import { publishToControl } from '../../outbox/outbox.ts'
import { type ActivityEntry, recordRelayedActivity } from './activity.ts'

/** Acts of customers on the mail side: their rows come to the project's chain by mail.outbox. */
export const activityTopic = 'activity.recorded'

/** In the transaction of the act. The row is in the project's chain within seconds. */
export const publishActivity = (tx: Tx, projectId: number, entry: ActivityEntry): Promise<void> =>
  publishToControl(tx, projectId, activityTopic, entry)

/** In one transaction of control, which keeps the ends of the chains locked: a few. */
const rowsAtOnce = 100

export const relayActivity: OutboxHandler = async (_mailTx, rows) => {
  const first = rows.slice(0, rowsAtOnce)
  // By project, so that two who relay lock the chains in the same order.
  const ordered = first.toSorted((a, b) => a.project_id - b.project_id)
  return async (tx) => {
    for (const { project_id, payload, created_at } of ordered) {
      // As PostgreSQL writes it again: without zeros at the end of the fraction.
      const at = new Date(created_at).toISOString().replace(/\.?0+Z$/, 'Z')
      await recordRelayedActivity(tx, project_id, { ...(payload as ActivityEntry), at })
    }
    return { told: first.length, done: idsOf(first) }
  }
}
