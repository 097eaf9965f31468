/**
 * Email addresses in recorded changes. Nothing can be erased from a hash chain, so the chain contains only a salted digest
 * of each address, `{"address_digest": "…"}`. The address itself is stored in control.audit_people under the path of its
 * field (`before.forward_to`, `related.0.after.address`) and can be erased there.
 */
const addressFields: ReadonlySet<string> = new Set(['address', 'email', 'forward_to'])

interface Digested {
  address_digest: string
}

const isDigested = (value: object): value is Digested =>
  Object.keys(value).length === 1 && typeof (value as Partial<Digested>).address_digest === 'string'

/** Replaces each address with the digest that `digestOf` returns for its path. */
export function withoutAddresses<T>(
  value: T,
  path: string,
  digestOf: (path: string, address: string) => string,
): T {
  return mapped(value, path, (part, at, field) =>
    typeof part === 'string' && addressFields.has(field) ? { address_digest: digestOf(at, part) } : undefined,
  )
}

/** Restores the addresses. An erased address becomes null. */
export function withAddresses<T>(value: T, path: string, addresses: ReadonlyMap<string, string | null>): T {
  return mapped(value, path, (part, at) =>
    typeof part === 'object' && part !== null && isDigested(part) ? (addresses.get(at) ?? null) : undefined,
  )
}

/** The address digests in the value, by path. */
export function addressDigests(value: unknown, path: string): Map<string, string> {
  const found = new Map<string, string>()
  mapped(value, path, (part, at) => {
    if (typeof part !== 'object' || part === null || !isDigested(part)) return undefined
    found.set(at, part.address_digest)
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
