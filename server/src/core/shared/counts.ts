/** Counts stop here. Larger numbers need not be exact. */
export const countCap = 10_000

/** "1 recipient", "1,200 recipients". */
export const counted = (count: number, noun: string): string =>
  `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`

/** "60 minutes", "24 hours", "7 days". */
export function durationText(minutes: number): string {
  if (minutes > 1440 && minutes % 1440 === 0) return counted(minutes / 1440, 'day')
  return minutes > 60 && minutes % 60 === 0 ? counted(minutes / 60, 'hour') : counted(minutes, 'minute')
}

/** Undefined if the count could not be read. */
export const countText = (count: number | undefined): string =>
  count === undefined ? 'unknown at the moment' : count > countCap ? `more than ${countCap}` : String(count)
