/**
 * Splits a message header into its fields. Each field retains its octets and folding; joining the fields
 * restores the original. Follows RFC 5322 §2.2 but is stricter: the obsolete syntax (§4.5) is rejected,
 * because text that only some readers treat as a field can hide a second sender.
 */
export interface Field {
  /** In lower case. */
  name: string
  /** Unchanged, including the name and folding, without the final CRLF. One character per octet (latin1). */
  raw: string
}

export interface SplitHeader {
  fields: Field[]
  /** After the empty line. */
  body: Buffer
}

export interface HeaderBounds {
  bytes: number
  fields: number
}

/** For submitted mail. Postfix truncates headers larger than 100 KiB (header_size_limit). */
export const submittedBounds: HeaderBounds = { bytes: 64 * 1024, fields: 1000 }
/** Leaves room for the fields that Postern adds, so accepted mail can always be sent. */
export const storedBounds: HeaderBounds = { bytes: 80 * 1024, fields: 1010 }
const maxNameLength = 100

// §2.2 and §3.6.8: printable ASCII except the colon, and no space before the colon.
const fieldName = /^([\x21-\x39\x3b-\x7e]+):/
// Printable, a tab, or an octet of UTF-8.
const printable = /^[\t\x20-\x7e\x80-\xff]*$/

/** `fault` completes a sentence that begins with "The message". The body is not checked here. */
export function splitFields(mime: Buffer, bounds: HeaderBounds): SplitHeader | { fault: string } {
  const end = headerEnd(mime, bounds.bytes)
  if (end === undefined) return { fault: `has a header of more than ${bounds.bytes / 1024} KiB` }
  const text = mime.toString('latin1', 0, end)
  const fields: Field[] = []
  let lines: string[] = []
  let name = ''
  const close = () => {
    if (lines.length > 0) fields.push({ name, raw: lines.join('\r\n') })
  }
  for (const line of text === '' ? [] : text.split('\r\n')) {
    if (!printable.test(line)) return { fault: 'has a control character or a bare CR or LF in its header' }
    if (/^[ \t]/.test(line)) {
      if (lines.length === 0) return { fault: 'begins with a space' }
      if (line.trim() === '') return { fault: 'has a blank continuation line in its header' }
      lines.push(line)
      continue
    }
    const [, written] = fieldName.exec(line) ?? []
    if (written === undefined || written.length > maxNameLength) {
      return {
        fault: 'has a line in its header that is not a field; is the empty line after the header missing?',
      }
    }
    close()
    if (fields.length === bounds.fields)
      return { fault: `has more than ${bounds.fields} fields in its header` }
    lines = [line]
    name = written.toLowerCase()
  }
  close()
  return { fields, body: mime.subarray(Math.min(mime.length, end + (text === '' ? 2 : 4))) }
}

export const joinFields = (fields: readonly string[], body: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${fields.join('\r\n')}\r\n\r\n`, 'latin1'), body])

/** The end of the last header line, before its CRLF; undefined if the header is too large. */
export function headerEnd(mime: Buffer, maxBytes: number): number | undefined {
  if (mime[0] === 0x0d && mime[1] === 0x0a) return 0
  const end = mime.subarray(0, maxBytes + 4).indexOf('\r\n\r\n')
  if (end >= 0) return end
  if (mime.length > maxBytes) return undefined
  // A message without a body may lack the empty line.
  return mime.at(-1) === 0x0a ? mime.length - 2 : mime.length
}

/** The unfolded value. UTF-8 is decoded (RFC 6532). */
export function unfolded({ raw }: Field): string {
  const value = raw.slice(raw.indexOf(':') + 1).replaceAll('\r\n', '')
  return Buffer.from(value, 'latin1')
    .toString('utf8')
    .replace(/[ \t]+/g, ' ')
    .trim()
}
