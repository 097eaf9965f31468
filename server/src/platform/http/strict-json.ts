import { parse } from 'secure-json-parse'
import { PosternError } from '../errors.ts'

/** RFC 8259 §8.1: JSON is UTF-8. Other bytes would be silently replaced. */
export function requireUtf8(contentType: string | undefined): void {
  const charset = /;\s*charset="?([^";\s]+)/i.exec(contentType ?? '')?.[1]
  if (charset !== undefined && charset.toLowerCase() !== 'utf-8') {
    throw new PosternError('unsupported_media_type', 'Send the body as JSON in UTF-8.')
  }
}

/** RFC 9110 §8.4: an encoded body is not the JSON that its type declares. */
export function requireIdentityEncoding(contentEncoding: string | undefined): void {
  const codings = (contentEncoding ?? '').split(',').map((coding) => coding.trim().toLowerCase())
  if (codings.some((coding) => coding !== '' && coding !== 'identity')) {
    throw new PosternError('unsupported_media_type', 'Send the body uncompressed, without Content-Encoding.')
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

export function parseStrictJson(body: Uint8Array): unknown {
  const text = decode(body)
  if (text === '') throw new PosternError('invalid_json', 'The body is empty; send a JSON object.')
  try {
    return mayNamePrototype(text)
      ? parse(text, { protoAction: 'error', constructorAction: 'error' })
      : JSON.parse(text)
  } catch {
    throw new PosternError(
      'invalid_json',
      'The body is not valid JSON, or it has a member named __proto__ or constructor.',
    )
  }
}

/**
 * Whether the text can have a member named `__proto__` or `constructor`, possibly with escaped characters. If not, the
 * search by secure-json-parse, which takes as long as parsing, is unnecessary.
 */
const mayNamePrototype = (text: string): boolean =>
  text.includes('__proto__') || text.includes('constructor') || text.includes('\\u')

function decode(body: Uint8Array): string {
  try {
    return utf8.decode(body)
  } catch {
    throw new PosternError('invalid_json', 'The body is not UTF-8.')
  }
}
