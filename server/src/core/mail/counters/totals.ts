import type { UnscopedDb } from '../../../platform/db/db.ts'
import { settlingMs } from '../../control/policies/buckets.ts'
import { insertTotals, listHourTotals, type Totals } from './totals.sql.ts'

export type { Totals }
export { listHourTotals }

/** Buckets per statement: an hour. */
const foldedAtOnce = 12

/**
 * Sums up the sending counters of all projects, once for each bucket, a minute after its end. After an interruption, only the
 * last 24 hours are caught up, because the overview shows no more.
 */
export async function foldTotals(mail: UnscopedDb): Promise<void> {
  const fold = () => mail.writeOne((tx) => insertTotals(tx, { limit: foldedAtOnce, settlingMs }))
  for (let folded = foldedAtOnce; folded === foldedAtOnce; ) folded = await fold()
}
