import type { Db, Tx } from './db.ts'

/** Rows deleted per transaction. Keeps transactions short, however large the backlog is. */
export const purgedAtOnce = 5_000
/** Transactions per run. The next run deletes the remaining rows. */
const stepsAtMost = 200

/** `step` deletes up to `purgedAtOnce` rows and returns the number deleted. */
export async function purge(db: Db, step: (tx: Tx) => Promise<number>): Promise<void> {
  for (let done = 0; done < stepsAtMost; done++) if ((await db.transaction(step)) < purgedAtOnce) return
}
