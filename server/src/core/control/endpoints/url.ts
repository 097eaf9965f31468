import { PosternError } from '../../../platform/errors.ts'
import type { NetGuard } from '../../../platform/net/net-guard.ts'

/**
 * The stored form of an endpoint's URL, normalized by the WHATWG URL Standard, so the host that is checked is the host that
 * is connected to later (`0x7f.1` is 127.0.0.1, `ⓔxample.com` is example.com).
 *
 * A name that is public today can point into the operator's network tomorrow. Its addresses are therefore checked again
 * at every connection (platform/net/net-guard.ts).
 */
export function endpointUrl(text: string, guard: Pick<NetGuard, 'refusalOf'>): string {
  if (text.length > maxLength) throw refused(`must be at most ${maxLength} characters long; shorten it`)
  // URL parsers drop line breaks and convert backslashes. A URL that contains them is always a mistake.
  if (/[\p{Cc}\s\\]/u.test(text)) throw refused('must not contain whitespace or backslashes; encode them')
  if (!/^https:\/\/[^/]/i.test(text)) {
    throw refused('must be a full URL that starts with https://, such as https://example.com/hook')
  }
  const url = URL.parse(text)
  if (!url) throw refused('is not a valid URL such as https://example.com/hook')
  if (text.includes('#')) throw refused('must not have a fragment; remove the # and the text after it')
  const refusal = guard.refusalOf(url)
  if (refusal !== undefined) throw new PosternError('validation_failed', `"url" is not allowed. ${refusal}`)
  if (url.href.length > maxLength) {
    throw refused(`must be at most ${maxLength} characters long when encoded; shorten it`)
  }
  return url.href
}

const maxLength = 2048

const refused = (why: string): PosternError => new PosternError('validation_failed', `"url" ${why}.`)
