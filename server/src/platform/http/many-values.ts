import { PosternError } from '../errors.ts'

/** Checking a body tells every fault and makes an object for each: a few megabytes of `{}` would take minutes. */

// A batch of 500 messages with 50 recipients each has 40,000.
const maxValues = 50_000
const maxElements = 1_000

export const manyValues = (): PosternError =>
  new PosternError(
    'validation_failed',
    `The body holds a list of more than ${maxElements}, or more than ${maxValues} values in all. Send several.`,
  )

export function hasManyValues(body: unknown): boolean {
  const waiting = [body]
  for (let seen = 0; waiting.length > 0; seen++) {
    const value = waiting.pop()
    if (typeof value !== 'object' || value === null) continue
    const inner = Array.isArray(value) ? value : Object.values(value)
    if (inner.length > maxElements || seen + waiting.length > maxValues) return true
    waiting.push(...inner)
  }
  return false
}

const [quote, backslash, comma, bracket, brace] = Buffer.from('"\\,[{') as unknown as number[]
// A value has at most one opening and one comma; beyond twice as many as are allowed, there are too many values for sure.
const maxMarks = 2.5 * maxValues

/**
 * Before parsing: so many values that parsing them could take all memory. 36 MiB of `{},` take 1 GiB, and a thread that is
 * out of memory inside of JSON.parse ends the whole process, whatever its limit. Whether it is JSON at all is not known yet.
 */
export function hasTooManyToParse(json: Uint8Array): boolean {
  let marks = 0
  let isInText = false
  for (let at = 0; at < json.length; at++) {
    const octet = json[at]
    if (isInText) {
      if (octet === backslash) at++
      else if (octet === quote) isInText = false
    } else if (octet === quote) isInText = true
    else if ((octet === comma || octet === bracket || octet === brace) && ++marks > maxMarks) return true
  }
  return false
}
