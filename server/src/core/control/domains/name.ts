import { domainToASCII, domainToUnicode } from 'node:url'
import { parse } from 'tldts'
import { PosternError } from '../../../platform/errors.ts'

/**
 * RFC 1035 §2.3.4 allows 253 characters, and the longest record name must fit as well: SES prepends 32 characters and
 * `._domainkey.`.
 */
const maxLength = 253 - 44
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * The stored form of a domain name: A-labels in lower case, as in DNS.
 *
 * The name must be below a public suffix (https://publicsuffix.org, including private ones such as `github.io`), because
 * suffixes such as `co.uk` have no single owner. A name under a suffix that is not listed, such as an intranet's, is accepted.
 */
export function domainName(text: string): string {
  // URL parsers interpret these characters in different ways, and no domain name needs them.
  if (/[\s/\\@:?#%\p{Cc}]/u.test(text)) throw refused(`must be a plain name such as mail.example.com`)
  const name = domainToASCII(text.replace(/\.$/, ''))
  const labels = name.split('.')
  if (name === '' || !labels.every((part) => label.test(part)) || !isReadable(name)) {
    throw refused('is not a valid domain name such as mail.example.com')
  }
  if (name.length > maxLength) {
    throw refused(
      `must be at most ${maxLength} characters long, because the names of its DNS records are longer`,
    )
  }
  // RFC 3696 §2: a name with an all-numeric last label could be mistaken for an IP address.
  if (/^\d+$/.test(labels.at(-1) ?? '')) throw refused('must be a name, not an IP address')
  if (parse(name, { allowPrivateDomains: true }).domain === null) {
    throw refused('is a public suffix; use a domain that you registered')
  }
  return name
}

/** RFC 5891 §5.4: an A-label must decode to a U-label that encodes to the same A-label. */
const isReadable = (name: string): boolean => {
  const readable = domainToUnicode(name)
  return !/(?:^|\.)xn--/.test(readable) && domainToASCII(readable) === name
}

const refused = (why: string): PosternError => new PosternError('validation_failed', `"name" ${why}.`)
