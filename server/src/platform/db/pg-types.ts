import pg from 'pg'

const { builtins } = pg.types

/**
 * Type parsers that differ from pg's defaults.
 *
 * int8 becomes a number: identifiers and counters stay below 2^53 (the API rejects larger ones), and a larger value
 * throws instead of being rounded. Only prices are numeric. A date stays text because it has no time zone.
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
  // biome-ignore lint/suspicious/noExplicitAny: required by the types of pg.
  getTypeParser: (id: number, format?: 'text' | 'binary'): any =>
    (format === 'binary' ? undefined : parsers[id]) ?? pg.types.getTypeParser(id, format),
}
