/**
 * Personal data in recorded changes: email addresses, and texts that can name a person. Nothing can be erased from a hash
 * chain, so the chain contains only a salted digest of each:
 *
 *   an address             {"address_digest": "…"}
 *   a text                 {"text_digest": "…", "characters": 120}
 *   a list of addresses    {"list_digest": "…", "count": 9500}: the SHA-256 of the sorted digests of all its addresses
 *
 * The address or text itself is stored in control.audit_people under the path of its field (`before.forward_to`,
 * `related.0.after.address`, `~after.addresses.17` in a list) and can be erased there.
 */
import { createHash } from 'node:crypto'

const addressFields: ReadonlySet<string> = new Set(['address', 'email', 'forward_to'])
const textField = 'text'
const listField = 'addresses'

/** The paths in lists begin with this character, and sort after all others. */
export const firstOfList = '~'

/** Whether the value at this path is a text and not an address. */
export const isTextPath = (path: string): boolean => path.endsWith(`.${textField}`)

interface DigestedList {
  list_digest: string
  count: number
}

const digestIn = (value: object): string | undefined => {
  const { address_digest, text_digest } = value as { address_digest?: unknown; text_digest?: unknown }
  const fields = Object.keys(value).length
  if (typeof address_digest === 'string' && fields === 1) return address_digest
  if (typeof text_digest === 'string' && fields === 2 && 'characters' in value) return text_digest
  return undefined
}

const isDigestedList = (value: object): value is DigestedList => {
  const { list_digest, count } = value as Partial<DigestedList>
  return typeof list_digest === 'string' && typeof count === 'number' && Object.keys(value).length === 2
}

/** The digest of a list of addresses. The order of the addresses makes no difference. */
export const listDigest = (digests: readonly string[]): string =>
  createHash('sha256').update(digests.toSorted().join(''), 'hex').digest('hex')

/** Replaces each address and text with the digest that `digestOf` returns for its path. */
export function withoutAddresses<T>(
  value: T,
  path: string,
  digestOf: (path: string, text: string) => string,
): T {
  return mapped(value, path, (part, at, field) => {
    if (field === listField && Array.isArray(part)) {
      const digests = part.map((address, index) => digestOf(`${firstOfList}${at}.${index}`, String(address)))
      return { list_digest: listDigest(digests), count: digests.length }
    }
    if (typeof part !== 'string') return undefined
    if (addressFields.has(field)) return { address_digest: digestOf(at, part) }
    return field === textField ? { text_digest: digestOf(at, part), characters: [...part].length } : undefined
  })
}

/** Restores the addresses and texts. Erased ones become null. Lists are not restored. */
export function withAddresses<T>(value: T, path: string, addresses: ReadonlyMap<string, string | null>): T {
  return mapped(value, path, (part, at) =>
    typeof part === 'object' && part !== null && digestIn(part) !== undefined
      ? (addresses.get(at) ?? null)
      : undefined,
  )
}

/** The digests of addresses and texts in the value, by path. */
export function addressDigests(value: unknown, path: string): Map<string, string> {
  const found = new Map<string, string>()
  mapped(value, path, (part, at) => {
    const digest = typeof part === 'object' && part !== null ? digestIn(part) : undefined
    if (digest === undefined) return undefined
    found.set(at, digest)
    return null
  })
  return found
}

/** The lists of addresses in the value, by path. */
export function listDigests(value: unknown, path: string): Map<string, DigestedList> {
  const found = new Map<string, DigestedList>()
  mapped(value, path, (part, at) => {
    if (typeof part !== 'object' || part === null || !isDigestedList(part)) return undefined
    found.set(at, part)
    return null
  })
  return found
}

/** Postern does not write deeper values. Forged values can be deeper, but do not contain recorded addresses. */
const maxDepth = 20

/** `replace` returns the replacement for a part, or undefined to descend into it. */
function mapped<T>(
  value: T,
  path: string,
  replace: (part: unknown, path: string, field: string) => unknown,
  depth = 0,
): T {
  if (typeof value !== 'object' || value === null || depth > maxDepth) return value
  const mapPart = (part: unknown, field: string): unknown => {
    const at = `${path}.${field}`
    const other = replace(part, at, field)
    return other === undefined ? mapped(part, at, replace, depth + 1) : other
  }
  if (Array.isArray(value)) return value.map((part, index) => mapPart(part, String(index))) as T
  return Object.fromEntries(Object.entries(value).map(([field, part]) => [field, mapPart(part, field)])) as T
}
