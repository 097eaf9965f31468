import { domainToASCII, domainToUnicode } from 'node:url'
import { parse } from 'tldts'
import { PosternError } from '../../../platform/errors.ts'

/**
 * RFC 1035 §2.3.4 allows 253 characters, and the longest of the domain's records has to be a name as well: SES's,
 * with 32 characters and `._domainkey.` before it.
 */
const maxLength = 253 - 44
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * A domain's name as it is stored: A-labels in lower case, as DNS has it.
 *
 * It must lie below a public suffix (https://publicsuffix.org, private ones such as `github.io` included): nobody
 * owns `co.uk`. A name under a suffix that the list does not know, such as an intranet's, is taken.
 */
export function domainName(text: string): string {
  // A parser of addresses takes these in its own ways; in a name nobody means them.
  if (/[\s/\\@:?#%\p{Cc}]/u.test(text)) throw refused(`must be a plain name such as mail.example.com`)
  const name = domainToASCII(text.replace(/\.$/, ''))
  const labels = name.split('.')
  if (name === '' || !labels.every((part) => label.test(part)) || !isReadable(name)) {
    throw refused('is not a well-formed domain name; write it like mail.example.com')
  }
  if (name.length > maxLength) {
    throw refused(`must be at most ${maxLength} characters long, so that the names of its DNS records fit`)
  }
  // RFC 3696 §2: a name whose last label is all digits would be taken for an address.
  if (/^\d+$/.test(labels.at(-1) ?? '')) throw refused('must be a name, not an IP address')
  if (parse(name, { allowPrivateDomains: true }).domain === null) {
    throw refused('is a public suffix, under which others register names; use a domain of your own')
  }
  return name
}

/** RFC 5891 §5.4: an A-label stands for something, and for nothing that would be written otherwise. */
const isReadable = (name: string): boolean => {
  const readable = domainToUnicode(name)
  return !/(?:^|\.)xn--/.test(readable) && domainToASCII(readable) === name
}

const refused = (why: string): PosternError => new PosternError('validation_failed', `"name" ${why}.`)
