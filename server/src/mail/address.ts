/**
 * A mailbox as it stands in an envelope: RFC 5321 §4.1.2, in ASCII, with a host name behind the @.
 *
 * Left out on purpose: quoted local parts, address literals, comments, display names, and internationalised
 * addresses (RFC 6531). Nothing is trimmed or mended: what is not an address is none.
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

/** RFC 5321 §2.3.5: fully qualified. A last label of digits alone would be read as an IPv4 address. */
function isHostName(name: string): boolean {
  const labels = name.split('.')
  return (
    name.length <= maxDomainLength &&
    labels.length >= 2 &&
    labels.every((part) => label.test(part)) &&
    !/^\d+$/.test(labels.at(-1) ?? '')
  )
}

export const addressText = ({ local, domain }: Address): string => `${local}@${domain}`

/** For comparing: nobody has two mailboxes that differ in case alone. */
export const lowerCased = ({ local, domain }: Address): Address => ({ local: local.toLowerCase(), domain })
