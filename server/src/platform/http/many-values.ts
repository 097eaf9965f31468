import { PosternError } from '../errors.ts'

/**
 * Limits the number of values in a body. Validation creates an object per error, and a few megabytes of `{}` would take
 * minutes.
 */

// A batch of 500 messages with 50 recipients each has 40,000 values.
const maxValues = 50_000
const maxElements = 1_000

export const manyValues = (): PosternError =>
  new PosternError(
    'validation_failed',
    `The body has a list of more than ${maxElements} items or more than ${maxValues} values in total. Split the request.`,
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
// A value has at most one opening bracket and one comma, so more marks than this always mean too many values.
const maxMarks = 2.5 * maxValues

/**
 * Checks before parsing whether the values could exhaust memory. Parsing 36 MiB of `{},` takes 1 GiB of
 * memory, and a thread that runs out of memory in JSON.parse terminates the whole process, regardless of
 * the thread's memory limit. The input may be invalid JSON.
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
