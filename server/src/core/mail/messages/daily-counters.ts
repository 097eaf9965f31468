import type { Tx } from '../../../platform/db/db.ts'
import { addToDay, type DailyCounts, insertStatsChanged } from './daily-counters.sql.ts'

export type { DailyCounts }

/**
 * Adds to projects' daily counters, by the UTC day of the change. Publishes `project.stats_changed` to the
 * control side if the change affects the project's statistics or reputation.
 *
 * A project's counter row is locked until the transaction ends, so call this last.
 */
export async function countDaily(tx: Tx, counts: readonly DailyCounts[]): Promise<void> {
  if (counts.length === 0) return
  const published = counts.filter(({ bounced, failed, complained }) => bounced || failed || complained)
  if (published.length > 0) {
    await insertStatsChanged(
      tx,
      published.map(({ projectId }) => projectId),
    )
  }
  await addToDay(tx, counts)
}
