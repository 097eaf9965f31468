/**
 * One line of an export: a JSON object, written as JSON.stringify writes it. Verification reads the same
 * lines whether they come from a file or straight from the database.
 */
export interface Line {
  text: string
  value: unknown
  /**
   * Whether the text says exactly what `value` says. JSON can say more than JavaScript holds: a number with
   * more digits, 1.0 beside 1, a name twice. Such a text was not written by Postern, and a hash over `value`
   * would not show it.
   */
  isExact: boolean
}

/** Undefined when it is no JSON object. */
export function lineOfFile(text: string): Line | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  return { text, value, isExact: written(value) === text }
}

/**
 * From PostgreSQL's JSON, which differs in white space, in the order of names, and in writing no exponents.
 * What is not exact goes into the export as the database has it, so that it can be seen there.
 */
export function lineOfDatabase(raw: string): Line {
  // json_agg breaks lines between its elements; inside of a text a line break is always escaped.
  const json = raw.replaceAll('\n', ' ')
  const value: unknown = JSON.parse(json)
  const text = written(value)
  if (text === undefined) return { text: json, value, isExact: false }
  // The quick look is enough for nearly every row: a reviver costs five times the parsing.
  const isExact = withoutSpace(text) === withoutSpace(json) || holdsExactNumbers(json)
  return { text: isExact ? text : json, value, isExact }
}

/** Undefined for what is nested so deeply that JavaScript can read it and not write it. */
function written(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

const withoutSpace = (text: string): string => text.replaceAll(' ', '')

function holdsExactNumbers(json: string): boolean {
  let isExact = true
  try {
    JSON.parse(json, (_name, value: unknown, context?: { source?: string }) => {
      if (typeof value === 'number' && !isSameNumber(String(value), context?.source ?? '')) isExact = false
      return value
    })
  } catch (error) {
    // A reviver reaches less deep than `written`.
    if (error instanceof RangeError) return false
    throw error
  }
  return isExact
}

/** 1e+21 and 1000000000000000000000 are; 1.0 and 1 are not, because Postern never wrote the former. */
const isSameNumber = (ours: string, theirs: string): boolean =>
  digitsOf(ours) === digitsOf(theirs) && !/\.\d*0$/.test(theirs)

// Both were read as the same number, so the digits that count are enough.
const digitsOf = (number: string): string =>
  number
    .replace(/e.*$/, '')
    .replace(/[.-]/g, '')
    .replace(/^0+|0+$/g, '')
