/** RFC 5322 §2.1.1. */
const maxLineLength = 998

const [nul, lf, cr] = [0x00, 0x0a, 0x0d]

/**
 * Which rule of RFC 5322 §2.1.1 and §2.3 the lines of a mail violate. Undefined when all lines end in CRLF, none is too long,
 * and there is no NUL.
 *
 * A hand-written loop: a regular expression that finds long lines took ten times as long as composing a mail.
 */
export function lineFault(mime: Uint8Array): string | undefined {
  const tooLong = `has a line of more than ${maxLineLength} octets`
  let start = 0
  for (let at = 0; at < mime.length; at++) {
    const octet = mime[at] as number
    // Nearly all octets: with this line, 25 MiB take a fifth of the time.
    if (octet > cr) continue
    if (octet === nul) return 'contains a NUL character'
    if ((octet === cr && mime[at + 1] !== lf) || (octet === lf && mime[at - 1] !== cr)) {
      return 'contains a bare CR or LF'
    }
    if (octet !== lf) continue
    if (at - 1 - start > maxLineLength) return tooLong
    start = at + 1
  }
  return mime.length - start > maxLineLength ? tooLong : undefined
}
