/**
 * Strict parsing of a compact JWT, before its signature is verified.
 *
 * jose verifies the signature. It accepts two members with the same name in a JSON object (JSON.parse uses the last one,
 * other parsers the first; RFC 8725 §2.4 calls this an attack surface) and base64url that is not the canonical encoding of
 * its bytes. Both are rejected here. A name that contains an escape is rejected as well: it can hide a duplicate, and V8 can
 * mistake it for a name in a text parsed earlier (nodejs/node#63785). Only `\/` is allowed, because some JSON serializers
 * use it in names that are URLs.
 */
export interface UnverifiedJwt {
  header: Record<string, unknown>
  payload: Record<string, unknown>
}

const maxTokenLength = 8192
const segment = /^[A-Za-z0-9_-]+$/
// RFC 8725 §3.10: a token must not choose its own key. `crit` names extensions, and no extension is supported.
const refusedHeaders = ['jku', 'jwk', 'x5u', 'x5c', 'crit', 'b64', 'zip', 'enc']

/** Header and payload, or undefined if the text is not a well-formed compact JWS. */
export function readJwt(token: string): UnverifiedJwt | undefined {
  if (token.length > maxTokenLength) return undefined
  const segments = token.split('.')
  if (segments.length !== 3 || !segments.every(isCanonicalBase64Url)) return undefined
  const header = readObject(segments[0])
  const payload = readObject(segments[1])
  if (!header || !payload || refusedHeaders.some((name) => Object.hasOwn(header, name))) return undefined
  return { header, payload }
}

function isCanonicalBase64Url(text: string): boolean {
  return segment.test(text) && Buffer.from(text, 'base64url').toString('base64url') === text
}

function readObject(text = ''): Record<string, unknown> | undefined {
  const bytes = Buffer.from(text, 'base64url')
  try {
    const json = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    const value: unknown = JSON.parse(json)
    const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isRecord && !hasAmbiguousNames(json) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

const tokens = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/g

/** Whether any object in this (valid) JSON text has two members with the same name, or a name with an escape. */
export function hasAmbiguousNames(json: string): boolean {
  const open: (Set<string> | undefined)[] = []
  let lastString = ''
  for (const [token] of json.matchAll(tokens)) {
    if (token === '{') open.push(new Set())
    else if (token === '[') open.push(undefined)
    else if (token === '}' || token === ']') open.pop()
    else if (token === ':') {
      const names = open.at(-1)
      const name = lastString.replaceAll('\\/', '/')
      if (name.includes('\\') || names?.has(name)) return true
      names?.add(name)
    } else if (token !== ',') lastString = token
  }
  return false
}
