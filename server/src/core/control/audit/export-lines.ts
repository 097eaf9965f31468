/**
 * Lines of an export: JSON objects as written by JSON.stringify. Verification reads the same lines from a file or from the
 * database.
 */
export interface Line {
  text: string
  value: unknown
  /**
   * Whether the text represents exactly `value`. JSON can express more than JavaScript: numbers with more digits, 1.0 as
   * well as 1, duplicate names. Postern does not write such text, and the hash of `value` would not reveal the difference.
   */
  isExact: boolean
}

/** Undefined if the text is not a JSON object. */
export function lineOfFile(text: string): Line | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  return { text, value, isExact: stringify(value) === text }
}

/**
 * Converts PostgreSQL's JSON: its whitespace and order of names differ, and its numbers have no exponents. Inexact text is
 * exported unchanged, so it remains visible in the export.
 */
export function lineOfDatabase(raw: string): Line {
  // json_agg puts line breaks between elements. Within strings, line breaks are always escaped.
  const json = raw.replaceAll('\n', ' ')
  const value: unknown = JSON.parse(json)
  const text = stringify(value)
  if (text === undefined) return { text: json, value, isExact: false }
  // The quick comparison is sufficient for nearly every row. A reviver takes five times as long as parsing.
  const isExact = withoutSpace(text) === withoutSpace(json) || hasExactNumbers(json)
  return { text: isExact ? text : json, value, isExact }
}

/** Undefined if the value is nested too deeply. JavaScript can parse deeper values than it can stringify. */
function stringify(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

const withoutSpace = (text: string): string => text.replaceAll(' ', '')

function hasExactNumbers(json: string): boolean {
  let isExact = true
  try {
    JSON.parse(json, (_name, value: unknown, context?: { source?: string }) => {
      if (typeof value === 'number' && !isSameNumber(String(value), context?.source ?? '')) isExact = false
      return value
    })
  } catch (error) {
    // A reviver supports less depth than JSON.stringify.
    if (error instanceof RangeError) return false
    throw error
  }
  return isExact
}

/** True for 1e+21 and 1000000000000000000000. False for 1.0 and 1, because Postern never writes 1.0. */
const isSameNumber = (written: string, source: string): boolean =>
  digitsOf(written) === digitsOf(source) && !/\.\d*0$/.test(source)

// Both parse to the same number, so comparing the significant digits is sufficient.
const digitsOf = (number: string): string =>
  number
    .replace(/e.*$/, '')
    .replace(/[.-]/g, '')
    .replace(/^0+|0+$/g, '')
