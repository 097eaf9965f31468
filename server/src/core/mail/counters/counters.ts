import type { Tx } from '../../../platform/db/db.ts'
import {
  addCounts,
  type CountedKind,
  countedKinds,
  insertStatsChanged,
  type SendingCount,
} from './counters.sql.ts'

export type { CountedKind, SendingCount }
export { countedKinds }

/**
 * Adds to projects' counters of the current UTC day and of the current bucket of five minutes. Publishes `project.stats_changed` to
 * the control side if the change affects the project's statistics or reputation.
 *
 * A project's counter rows are locked until the transaction ends, so call this last.
 */
export async function countSending(tx: Tx, counts: readonly SendingCount[]): Promise<void> {
  if (counts.length === 0) return
  const published = counts.filter(({ bounced, failed, complained }) => bounced || failed || complained)
  if (published.length > 0) {
    await insertStatsChanged(
      tx,
      published.map(({ projectId }) => projectId),
    )
  }
  await addCounts(tx, counts)
}
