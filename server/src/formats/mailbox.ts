import { addressText, readInternationalAddress } from './address.ts'
import type { Mailbox } from './content.ts'

/** `fault` completes a sentence that begins with the name of the field. */
export type ReadMailbox = Mailbox | { fault: string }

const maxLength = 1000
// With every character escaped, a name is twice as long, which is still far below the line limit of 998
// octets (RFC 5322 §2.1.1).
const maxNameLength = 320

// RFC 5322 §3.2.3: these are special in a list of addresses. A dot in a name is obsolete but allowed
// (obs-phrase).
const needsQuotes = /["(),:;<>@[\\\]]/
// All kinds of line endings, and unpaired surrogates.
const neverInName = /[\p{Cc}\p{Cs}\u2028\u2029]/u

/**
 * A mailbox (RFC 5322 §3.4): `a@b`, `Name <a@b>` or `"Name, quoted" <a@b>`.
 *
 * Exactly one mailbox: no list, group or comment. Nothing is corrected, except that runs of spaces in a name,
 * which are equivalent to one space, are collapsed.
 */
export function readMailbox(text: string): ReadMailbox {
  if (text.length > maxLength) return { fault: `must be at most ${maxLength} characters long` }
  if (!text.endsWith('>')) return mailbox(null, text)
  const open = text.lastIndexOf('<')
  if (open < 0) return { fault: 'has a ">" without a "<"; use the form Ada <ada@example.com>' }
  const name = readName(text.slice(0, open))
  if (typeof name !== 'string') return name
  return mailbox(name === '' ? null : name, text.slice(open + 1, -1))
}

function mailbox(name: string | null, address: string): ReadMailbox {
  // RFC 2047 §5: not allowed in an address; readers that decode it would show a different address.
  if (address.includes('=?')) return { fault: 'has an encoded word in its address' }
  const read = readInternationalAddress(address)
  return 'fault' in read ? read : { name, address: addressText(read) }
}

function readName(text: string): string | { fault: string } {
  if (neverInName.test(text)) return { fault: 'has a control character or a line break in its name' }
  const phrase = text.replace(/ +/g, ' ').trim()
  const name = phrase.startsWith('"') ? unquoted(phrase) : needsQuotes.test(phrase) ? undefined : phrase
  if (name === undefined) {
    return { fault: 'has a name with characters that need quotes: "Lovelace, Ada" <ada@example.com>' }
  }
  if (name.length > maxNameLength) {
    return { fault: `must have a name of at most ${maxNameLength} characters` }
  }
  return name
}

/** RFC 5322 §3.2.4. Undefined if the quotes are not closed or are closed before the end. */
function unquoted(phrase: string): string | undefined {
  let name = ''
  for (let at = 1; at < phrase.length; at++) {
    const sign = phrase[at]
    if (sign === '"') return at === phrase.length - 1 ? name.trim() : undefined
    if (sign !== '\\') {
      name += sign
    } else {
      name += phrase[++at] ?? ''
    }
  }
  return undefined
}
