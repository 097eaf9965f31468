import pg from 'pg'

const { builtins } = pg.types

const int8 = (text: string): number => {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`int8 out of range: ${text}`)
  return value
}

const int8Array = 1016
const parseTexts: (text: string) => string[] = pg.types.getTypeParser(int8Array as number)

/**
 * Type parsers that differ from pg's defaults.
 *
 * int8 becomes a number: identifiers and counters stay below 2^53 (the API rejects larger ones), and a larger value
 * throws instead of being rounded. Only prices are numeric. A date stays text because it has no time zone.
 */
const parsers: Partial<Record<number, (text: string) => unknown>> = {
  [builtins.INT8]: int8,
  [int8Array]: (text) => parseTexts(text).map(int8),
  [builtins.NUMERIC]: Number,
  [builtins.DATE]: (text) => text,
}

export const pgTypes: pg.CustomTypesConfig = {
  // biome-ignore lint/suspicious/noExplicitAny: required by the types of pg.
  getTypeParser: (id: number, format?: 'text' | 'binary'): any =>
    (format === 'binary' ? undefined : parsers[id]) ?? pg.types.getTypeParser(id, format),
}
