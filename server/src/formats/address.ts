import { domainToASCII } from 'node:url'

/**
 * An envelope address: RFC 5321 §4.1.2, with a host name after the @. `readAddress` accepts only ASCII;
 * `readInternationalAddress` also accepts RFC 6531.
 *
 * Quoted local parts, address literals, comments and display names are deliberately not supported. Nothing is
 * trimmed or corrected.
 */
export interface Address {
  /** As written, because the receiving domain decides whether case matters (RFC 5321 §2.4). */
  local: string
  /** Lower-case A-labels. */
  domain: string
}

/** `fault` completes a sentence that begins with the name of the field. */
export type ReadAddress = Address | { fault: string }

// RFC 5321 §4.5.3.1.1 and §4.5.3.1.3: a path has at most 256 octets, including its angle brackets.
const maxLocalLength = 64
const maxLength = 254
// RFC 1035 §2.3.4, without the root label.
const maxDomainLength = 253

// RFC 5322 §3.2.3. No two repetitions can match the same text, so matching takes linear time.
const dotAtom = /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*$/
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

export function readAddress(text: string): ReadAddress {
  if (text.length > maxLength) return { fault: `must be at most ${maxLength} characters long` }
  // Checked before any conversion to lower case: the Kelvin sign in lower case is a k.
  if (!/^[\x21-\x7e]*$/.test(text)) {
    return { fault: 'must be ASCII without spaces; use the xn-- labels of an internationalized domain' }
  }
  const at = text.lastIndexOf('@')
  if (at < 0) return { fault: 'has no @; use a full address such as support@example.com' }
  const local = text.slice(0, at)
  const domain = text.slice(at + 1).toLowerCase()
  if (local.length > maxLocalLength) {
    return { fault: `must have at most ${maxLocalLength} characters before the @` }
  }
  if (!dotAtom.test(local)) {
    return {
      fault: 'must have only ASCII letters, digits, permitted symbols and single dots before the @',
    }
  }
  if (!isHostName(domain)) {
    return { fault: 'must have a full domain name after the @, such as example.com' }
  }
  return { local, domain }
}

// RFC 6531 §3.3 allows every non-ASCII character in an atom. Invisible characters (format, separator,
// private-use and unassigned) are rejected: no legitimate mailbox contains them.
const wideDotAtom =
  /^(?:[\w!#$%&'*+/=?^`{|}~-]|[^\0-\x7f\p{C}\p{Z}])+(?:\.(?:[\w!#$%&'*+/=?^`{|}~-]|[^\0-\x7f\p{C}\p{Z}])+)*$/u
// Characters that URL host parsers interpret.
const neverInDomain = /[\s/\\@:?#%\p{Cc}]/u

/**
 * Also accepts non-ASCII characters: in the domain, which is converted to lower-case A-labels, and in the
 * local part (RFC 6531), which stays UTF-8 in normalization form C (RFC 6532 §3.1).
 */
export function readInternationalAddress(text: string): ReadAddress {
  if (text.length > maxLength || /^[\0-\x7f]*$/.test(text)) return readAddress(text)
  const at = text.lastIndexOf('@')
  if (at < 0) return { fault: 'has no @; use a full address such as support@example.com' }
  const local = text.slice(0, at).normalize('NFC')
  const named = text.slice(at + 1)
  const domain = neverInDomain.test(named) ? '' : domainToASCII(named)
  if (Buffer.byteLength(local) > maxLocalLength) {
    return { fault: `must have at most ${maxLocalLength} octets of UTF-8 before the @` }
  }
  if (!wideDotAtom.test(local)) {
    return { fault: 'must have only letters, digits, permitted symbols and single dots before the @' }
  }
  if (!isHostName(domain)) {
    return { fault: 'must have a full domain name after the @, such as example.com' }
  }
  if (Buffer.byteLength(local) + 1 + domain.length > maxLength) {
    return { fault: `must be at most ${maxLength} octets long, with the domain in its xn-- labels` }
  }
  return { local, domain }
}

/**
 * RFC 5321 §2.3.5: fully qualified. If the last label were a decimal or hexadecimal number, inet_aton would
 * read the name as an IPv4 address (127.0.0.0x1).
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

/** For comparison: in practice, no two mailboxes differ only in case. */
export const lowerCased = ({ local, domain }: Address): Address => ({ local: local.toLowerCase(), domain })
