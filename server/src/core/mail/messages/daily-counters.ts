import type { Tx } from '../../../platform/db/db.ts'
import { addToDay, type DailyCounts, insertCounted } from './daily-counters.sql.ts'

export type { DailyCounts }

/**
 * What became of mail, counted by the UTC day on which it became so, and a word to control where its figures are
 * concerned: those of a project, and its reputation, follow from what is counted here.
 *
 * A project's row of the day is locked from here to the end of the transaction: count last.
 */
export async function countDaily(tx: Tx, counts: readonly DailyCounts[]): Promise<void> {
  if (counts.length === 0) return
  const told = counts.filter(({ bounced, failed, complained }) => bounced || failed || complained)
  if (told.length > 0) {
    await insertCounted(
      tx,
      told.map(({ projectId }) => projectId),
    )
  }
  await addToDay(tx, counts)
}
