/** A value that only the service can know, and what can be said of it all the same. */
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
  new Unknown(`a text like ${pattern}`, (value) => typeof value === 'string' && pattern.test(value))
/** In the one form of our times, the order of the text is the order of time. */
export const timeFrom = (earlier: unknown) =>
  new Unknown(`a time from ${earlier} on`, (value) => isInstant(value) && value >= String(earlier))

/** Where the two differ, in words. Objects must have the same members in the same order. */
export function differences(expected: unknown, actual: unknown, at = ''): string[] {
  if (expected instanceof Unknown) {
    return expected.accepts(actual) ? [] : [`${at || 'it'} is ${short(actual)} and not ${expected.what}`]
  }
  if (Array.isArray(expected) && Array.isArray(actual)) {
    if (expected.length !== actual.length) {
      return [`${at || 'it'} has ${actual.length} items and not ${expected.length}: ${short(actual)}`]
    }
    return expected.flatMap((item, n) => differences(item, actual[n], `${at}[${n}]`))
  }
  if (isObject(expected) && isObject(actual)) {
    const [wanted, given] = [Object.keys(expected), Object.keys(actual)]
    if (wanted.join() !== given.join()) return [`${at || 'it'} has the members ${given} and not ${wanted}`]
    return wanted.flatMap((key) => differences(expected[key], actual[key], at === '' ? key : `${at}.${key}`))
  }
  return Object.is(expected, actual) ? [] : [`${at || 'it'} is ${short(actual)} and not ${short(expected)}`]
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const short = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, 300)
