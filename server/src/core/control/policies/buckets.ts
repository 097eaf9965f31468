/** The sending counters are kept per bucket of this length, and each bucket is evaluated once. */
export const bucketMinutes = 5
export const bucketMs = bucketMinutes * 60_000
/** Transactions that count have ended by then. */
export const settlingMs = 60_000
/** The number of projects that one statement evaluates. */
export const projectsAtOnce = 1_000
