/** Counting stops there: beyond some thousands nobody needs to know exactly. */
export const countCap = 10_000

/** Undefined: nobody could tell. */
export const countText = (count: number | undefined): string =>
  count === undefined
    ? 'not known at this moment'
    : count > countCap
      ? `more than ${countCap}`
      : String(count)
