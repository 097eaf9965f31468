import type { Tx } from '../../../platform/db/db.ts'
import { addToDay, type DailyCounts, insertStatsChanged } from './daily-counters.sql.ts'

export type { DailyCounts }

/**
 * Adds to the daily counters of projects, by the UTC day of the change, and publishes `project.stats_changed` to control
 * if the project's statistics or its reputation depend on the change.
 *
 * The counter row of a project is locked until the transaction ends: count last.
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
