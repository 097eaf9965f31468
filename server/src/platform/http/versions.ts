import { PosternError } from '../errors.ts'

/** Resource versions in HTTP: `ETag` in responses, `If-Match` in requests. */
export const etagOf = (version: number): string => `"${version}"`

/** RFC 9110 §13.1.1: `*` or a list of versions. */
export type IfMatch = '*' | readonly string[]

export function ifMatchOf(header: string | undefined): IfMatch | undefined {
  if (header === undefined) return undefined
  const text = header.trim()
  if (text === '*') return '*'
  // RFC 9110 §5.6.1.2: empty elements of a list are ignored.
  const elements = text.split(',').filter((tag) => tag.trim() !== '')
  const tags = elements.map((tag) => /^(?:W\/)?"([\x21\x23-\x7e]*)"$/.exec(tag.trim())?.[1])
  if (tags.length === 0 || tags.includes(undefined)) {
    throw new PosternError(
      'invalid_parameter',
      'If-Match must be * or the ETag from an earlier response, including its quotation marks.',
    )
  }
  return tags as string[]
}

export function requireVersion(ifMatch: IfMatch | undefined, { version }: { version: number }): void {
  if (ifMatch === undefined || ifMatch === '*' || ifMatch.includes(String(version))) return
  throw new PosternError(
    'stale_resource',
    `The resource has changed: its current version is ${version}. Read it again and retry.`,
  )
}
