/** Counts stop here. Larger numbers need not be exact. */
export const countCap = 10_000

/** Undefined if the count could not be read. */
export const countText = (count: number | undefined): string =>
  count === undefined ? 'unknown at the moment' : count > countCap ? `more than ${countCap}` : String(count)
