/**
 * The header of a mail taken apart into its fields, octet by octet: each keeps its folding, so that putting them
 * together again gives what was there. RFC 5322 §2.2, and stricter: nothing of the obsolete syntax (§4.5) is taken,
 * because what one reader takes for a field and another does not is how a second sender is hidden in a mail.
 */
export interface Field {
  /** In lower case. */
  name: string
  /** As it stands there, name, folding and all, without its last CRLF. An octet is a character (latin1). */
  raw: string
}

export interface SplitHeader {
  fields: Field[]
  /** What follows the empty line. */
  body: Buffer
}

export interface HeaderBounds {
  bytes: number
  fields: number
}

/** What somebody may bring. Postfix cuts off what a header has beyond 100 KiB (header_size_limit). */
export const broughtBounds: HeaderBounds = { bytes: 64 * 1024, fields: 1000 }
/** The same with what we write into it: whatever was within its bounds is within these when it is sent. */
export const keptBounds: HeaderBounds = { bytes: 80 * 1024, fields: 1010 }
const maxNameLength = 100

// §2.2, and §3.6.8: printable ASCII without the colon, and nothing between it and the colon.
const fieldName = /^([\x21-\x39\x3b-\x7e]+):/
// Printable, or a tab, or an octet of UTF-8.
const printable = /^[\t\x20-\x7e\x80-\xff]*$/

/** `fault` is the rest of a sentence that begins with "The mail". The lines of the body are looked at by others. */
export function splitFields(mime: Buffer, most: HeaderBounds): SplitHeader | { fault: string } {
  const end = headerEnd(mime, most.bytes)
  if (end === undefined) return { fault: `has a header of more than ${most.bytes / 1024} KiB` }
  const text = mime.toString('latin1', 0, end)
  const fields: Field[] = []
  let lines: string[] = []
  let name = ''
  const close = () => {
    if (lines.length > 0) fields.push({ name, raw: lines.join('\r\n') })
  }
  for (const line of text === '' ? [] : text.split('\r\n')) {
    if (!printable.test(line)) return { fault: 'has a control character or half a line end in its header' }
    if (/^[ \t]/.test(line)) {
      if (lines.length === 0) return { fault: 'begins with a space' }
      if (line.trim() === '') return { fault: 'has a line of nothing but spaces in its header' }
      lines.push(line)
      continue
    }
    const [, written] = fieldName.exec(line) ?? []
    if (written === undefined || written.length > maxNameLength) {
      return {
        fault: 'has a line in its header that is no field; is the empty line behind the header missing?',
      }
    }
    close()
    if (fields.length === most.fields) return { fault: `has more than ${most.fields} fields in its header` }
    lines = [line]
    name = written.toLowerCase()
  }
  close()
  return { fields, body: mime.subarray(Math.min(mime.length, end + (text === '' ? 2 : 4))) }
}

export const joinFields = (fields: readonly string[], body: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${fields.join('\r\n')}\r\n\r\n`, 'latin1'), body])

/** Where the last line of the header ends, before its CRLF; undefined when that is too far. */
export function headerEnd(mime: Buffer, maxBytes: number): number | undefined {
  if (mime[0] === 0x0d && mime[1] === 0x0a) return 0
  const end = mime.subarray(0, maxBytes + 4).indexOf('\r\n\r\n')
  if (end >= 0) return end
  if (mime.length > maxBytes) return undefined
  // A mail without a body need not have the empty line either.
  return mime.at(-1) === 0x0a ? mime.length - 2 : mime.length
}

/** What stands behind the colon, on one line. UTF-8 is read as such (RFC 6532). */
export function unfolded({ raw }: Field): string {
  const value = raw.slice(raw.indexOf(':') + 1).replaceAll('\r\n', '')
  return Buffer.from(value, 'latin1')
    .toString('utf8')
    .replace(/[ \t]+/g, ' ')
    .trim()
}
