import pg from 'pg'

const { builtins } = pg.types

/**
 * How PostgreSQL's text becomes JavaScript, where pg's own way does not fit.
 *
 * int8 is a number: identifiers and counters stay below 2^53 (the interface refuses larger ones), and one
 * that does not is reported here instead of being rounded. numeric is used for prices alone. A date has no
 * time zone, so it stays text.
 */
const parsers: Partial<Record<number, (text: string) => unknown>> = {
  [builtins.INT8]: (text) => {
    const value = Number(text)
    if (!Number.isSafeInteger(value)) throw new RangeError(`int8 out of range: ${text}`)
    return value
  },
  [builtins.NUMERIC]: Number,
  [builtins.DATE]: (text) => text,
}

export const pgTypes: pg.CustomTypesConfig = {
  // biome-ignore lint/suspicious/noExplicitAny: pg types its parsers so.
  getTypeParser: (id: number, format?: 'text' | 'binary'): any =>
    (format === 'binary' ? undefined : parsers[id]) ?? pg.types.getTypeParser(id, format),
}
