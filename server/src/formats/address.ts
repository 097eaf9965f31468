import { domainToASCII } from 'node:url'

/**
 * A mailbox as it stands in an envelope: RFC 5321 §4.1.2, with a host name behind the @. `readAddress` takes ASCII
 * alone; `readInternationalAddress` takes RFC 6531 as well.
 *
 * Left out on purpose: quoted local parts, address literals, comments and display names. Nothing is trimmed or
 * mended: what is not an address is none.
 */
export interface Address {
  /** As written: only the receiving domain knows whether its case matters (RFC 5321 §2.4). */
  local: string
  /** Lower-case A-labels. */
  domain: string
}

/** `fault` is the rest of a sentence that begins with the name of the field. */
export type ReadAddress = Address | { fault: string }

// RFC 5321 §4.5.3.1.1 and §4.5.3.1.3: a path is 256 octets with its angle brackets.
const maxLocalLength = 64
const maxLength = 254
// RFC 1035 §2.3.4, without the root's own label.
const maxDomainLength = 253

// RFC 5322 §3.2.3. No two repetitions can match the same text, so the time taken is linear.
const dotAtom = /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*$/
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

export function readAddress(text: string): ReadAddress {
  if (text.length > maxLength) return { fault: `must be at most ${maxLength} characters long` }
  // Before anything changes the case: the Kelvin sign in lower case is a k.
  if (!/^[\x21-\x7e]*$/.test(text)) {
    return { fault: 'must be ASCII without spaces; write an internationalised domain with its xn-- labels' }
  }
  const at = text.lastIndexOf('@')
  if (at < 0) return { fault: 'has no @; write a full address such as support@example.com' }
  const local = text.slice(0, at)
  const domain = text.slice(at + 1).toLowerCase()
  if (local.length > maxLocalLength) {
    return { fault: `must have at most ${maxLocalLength} characters before the @` }
  }
  if (!dotAtom.test(local)) {
    return {
      fault: 'has something before the @ that is not plain letters, digits and signs with single dots',
    }
  }
  if (!isHostName(domain)) {
    return { fault: 'must have a full domain name behind the @, such as example.com' }
  }
  return { local, domain }
}

// RFC 6531 §3.3 lets every character outside of ASCII into an atom. Those that nobody can see (format characters,
// separators, private and unassigned ones) are in no mailbox that somebody means.
const wideDotAtom =
  /^(?:[\w!#$%&'*+/=?^`{|}~-]|[^\0-\x7f\p{C}\p{Z}])+(?:\.(?:[\w!#$%&'*+/=?^`{|}~-]|[^\0-\x7f\p{C}\p{Z}])+)*$/u
// What a parser of hosts takes in ways of its own.
const neverInDomain = /[\s/\\@:?#%\p{Cc}]/u

/**
 * The same, or with characters outside of ASCII: in the domain, which becomes lower-case A-labels, and before the @
 * (RFC 6531), which is kept as UTF-8 in normalisation form C (RFC 6532 §3.1).
 */
export function readInternationalAddress(text: string): ReadAddress {
  if (text.length > maxLength || /^[\0-\x7f]*$/.test(text)) return readAddress(text)
  const at = text.lastIndexOf('@')
  if (at < 0) return { fault: 'has no @; write a full address such as support@example.com' }
  const local = text.slice(0, at).normalize('NFC')
  const named = text.slice(at + 1)
  const domain = neverInDomain.test(named) ? '' : domainToASCII(named)
  if (Buffer.byteLength(local) > maxLocalLength) {
    return { fault: `must have at most ${maxLocalLength} octets of UTF-8 before the @` }
  }
  if (!wideDotAtom.test(local)) {
    return { fault: 'has something before the @ that is not letters, digits and signs with single dots' }
  }
  if (!isHostName(domain)) {
    return { fault: 'must have a full domain name behind the @, such as example.com' }
  }
  if (Buffer.byteLength(local) + 1 + domain.length > maxLength) {
    return { fault: `must be at most ${maxLength} octets long, with the domain in its xn-- labels` }
  }
  return { local, domain }
}

/**
 * RFC 5321 §2.3.5: fully qualified. With a last label that is a number, decimal or hexadecimal, it would be read as an
 * IPv4 address (127.0.0.0x1) by whoever asks inet_aton.
 */
function isHostName(name: string): boolean {
  const labels = name.split('.')
  return (
    name.length <= maxDomainLength &&
    labels.length >= 2 &&
    labels.every((part) => label.test(part)) &&
    !/^(?:\d+|0x[\da-f]*)$/.test(labels.at(-1) ?? '')
  )
}

export const addressText = ({ local, domain }: Address): string => `${local}@${domain}`

/** For comparing: nobody has two mailboxes that differ in case alone. */
export const lowerCased = ({ local, domain }: Address): Address => ({ local: local.toLowerCase(), domain })
