import type { Db, OneStatement, Tx, UnscopedDb } from './db.ts'

/** Rows deleted per statement. Keeps transactions short, however large the backlog is. */
export const purgedAtOnce = 5_000
/** Steps per run. The next run deletes the remaining rows. */
const stepsAtMost = 200

/**
 * `step` deletes up to `purgedAtOnce` rows and returns the number deleted. It runs without BEGIN and COMMIT, because purges run
 * every minute and mostly find nothing.
 */
export const purge = (db: UnscopedDb, step: (tx: OneStatement) => Promise<number>): Promise<void> =>
  untilPurged(() => db.writeOne(step))

/** For steps of several statements. */
export const purgeInTransactions = (db: Db, step: (tx: Tx) => Promise<number>): Promise<void> =>
  untilPurged(() => db.transaction(step))

async function untilPurged(step: () => Promise<number>): Promise<void> {
  for (let done = 0; done < stepsAtMost; done++) if ((await step()) < purgedAtOnce) return
}
