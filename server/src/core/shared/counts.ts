/** Counts stop here. Larger numbers need not be exact. */
export const countCap = 10_000

/** "1 recipient", "1,200 recipients". */
export const counted = (count: number, noun: string): string =>
  `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`

/** Undefined if the count could not be read. */
export const countText = (count: number | undefined): string =>
  count === undefined ? 'unknown at the moment' : count > countCap ? `more than ${countCap}` : String(count)
