import type { Db, Tx } from './db.ts'

/** Rows that one transaction of a purge deletes: whatever has piled up, no transaction takes long. */
export const purgedAtOnce = 5_000
/** In one round; what is left is for the next. */
const stepsAtMost = 200

/** `step` deletes up to `purgedAtOnce` rows, and returns how many. */
export async function purge(db: Db, step: (tx: Tx) => Promise<number>): Promise<void> {
  for (let done = 0; done < stepsAtMost; done++) if ((await db.transaction(step)) < purgedAtOnce) return
}
