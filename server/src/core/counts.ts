/** Counting stops there: beyond some thousands nobody needs to know exactly. */
export const countCap = 10_000

export const countText = (count: number): string =>
  count > countCap ? `more than ${countCap}` : String(count)
