/** A value that only the service can know, with the conditions it must meet. */
export class Unknown {
  readonly what: string
  readonly accepts: (value: unknown) => boolean

  constructor(what: string, accepts: (value: unknown) => boolean) {
    this.what = what
    this.accepts = accepts
  }
}

const isInstant = (value: unknown): value is string =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value)

export const anId = new Unknown(
  'a new id',
  (value) => typeof value === 'number' && Number.isSafeInteger(value) && value > 0,
)
export const aTime = new Unknown('a time', isInstant)
export const anything = new Unknown('anything', () => true)
export const aText = (pattern: RegExp) =>
  new Unknown(`a string matching ${pattern}`, (value) => typeof value === 'string' && pattern.test(value))
/** Timestamps have a fixed format, so their lexical order is their chronological order. */
export const timeFrom = (earlier: unknown) =>
  new Unknown(`a time not before ${earlier}`, (value) => isInstant(value) && value >= String(earlier))

/** Describes the differences. Objects must have the same members in the same order. */
export function differences(expected: unknown, actual: unknown, at = ''): string[] {
  if (expected instanceof Unknown) {
    return expected.accepts(actual)
      ? []
      : [`${at || 'body'}: expected ${expected.what}, got ${short(actual)}`]
  }
  if (Array.isArray(expected) && Array.isArray(actual)) {
    if (expected.length !== actual.length) {
      return [`${at || 'body'}: expected ${expected.length} items, got ${actual.length}: ${short(actual)}`]
    }
    return expected.flatMap((item, n) => differences(item, actual[n], `${at}[${n}]`))
  }
  if (isObject(expected) && isObject(actual)) {
    const [wanted, given] = [Object.keys(expected), Object.keys(actual)]
    if (wanted.join() !== given.join())
      return [`${at || 'body'}: expected the members ${wanted}, got ${given}`]
    return wanted.flatMap((key) => differences(expected[key], actual[key], at === '' ? key : `${at}.${key}`))
  }
  return Object.is(expected, actual)
    ? []
    : [`${at || 'body'}: expected ${short(expected)}, got ${short(actual)}`]
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const short = (value: unknown): string => (JSON.stringify(value) ?? 'undefined').slice(0, 300)
