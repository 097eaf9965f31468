import PostalMime, { type Email } from 'postal-mime'

/** A parsed multipart/report message (RFC 6522). */
export interface Report {
  /**
   * The machine-readable fields, in groups separated by empty lines. Undefined if the report has no part of
   * this type.
   */
  groupsOf(type: RegExp): Fields[] | undefined
  /** The header of the reported message, if it was included. */
  original: Fields
}

/** By lower-case name, each with all its values in order. */
export type Fields = ReadonlyMap<string, readonly string[]>

// The relevant parts are at the beginning; a complete returned message may follow. Parsing a line takes up to
// 30 µs, however short the line is, and parsing an input takes at most 50 ms. Ordinary reports have two
// hundred lines.
const maxOctets = 64 * 1024
const maxLines = 800
const limits = { maxNestingDepth: 8, maxHeadersSize: 16 * 1024, forceRfc822Attachments: true }
const maxFields = 1000

/** Undefined for any other mail. Never rejects. */
export async function readReport(raw: Buffer): Promise<Report | undefined> {
  const mail = await PostalMime.parse(beginning(raw), limits).catch(() => undefined)
  if (!mail || !isReport(mail)) return undefined
  const textOf = (type: RegExp): string | undefined => {
    const part = mail.attachments.find(({ mimeType }) => type.test(mimeType))
    return part && typeof part.content !== 'string'
      ? Buffer.from(part.content as ArrayBuffer).toString()
      : undefined
  }
  const returned = textOf(/^(?:message\/(?:rfc822|global)|(?:text\/rfc822|message\/global)-headers?)$/)
  return {
    groupsOf: (type) => {
      const machine = textOf(type)
      return machine === undefined ? undefined : groupsOf(machine)
    },
    original: headerFieldsOf(returned ?? ''),
  }
}

function beginning(raw: Buffer): Buffer {
  let end = 0
  for (let lines = 0; lines < maxLines; lines++) {
    const next = raw.indexOf('\n', end)
    if (next < 0 || next >= maxOctets) return raw.subarray(0, maxOctets)
    end = next + 1
  }
  return raw.subarray(0, end)
}

const isReport = ({ headers }: Email): boolean =>
  headers.some(({ key, value }) => key === 'content-type' && /^\s*multipart\/report\b/i.test(value))

/** The header of a message. */
export const headerFieldsOf = (message: string): Fields => groupsOf(message)[0] ?? new Map()

/** RFC 822 fields, unfolded. Lines that are not fields are skipped. */
function groupsOf(text: string): Fields[] {
  const groups: Map<string, string[]>[] = []
  let fields: Map<string, string[]> | undefined
  let values: string[] | undefined
  let count = 0
  for (const line of text.slice(0, maxOctets).split(/\r?\n/)) {
    if (line.trim() === '') {
      fields = values = undefined
      continue
    }
    if (/^[ \t]/.test(line)) {
      if (values) values.push(`${values.pop()} ${line.trim()}`)
      continue
    }
    const colon = line.indexOf(':')
    if (colon < 1 || ++count > maxFields) continue
    if (!fields) {
      fields = new Map()
      groups.push(fields)
    }
    const name = line.slice(0, colon).trim().toLowerCase()
    values = fields.get(name) ?? []
    values.push(line.slice(colon + 1).trim())
    fields.set(name, values)
  }
  return groups
}

/** The first value of a field, without control characters and limited in length; null if there is none. */
export function fieldOf(fields: Fields, name: string): string | null {
  const [value] = fields.get(name) ?? []
  return value === undefined ? null : plain(value)
}

const plain = (value: string): string | null =>
  value
    .slice(0, 1000)
    .replace(/\p{Cc}+/gu, ' ')
    .trim() || null

/** The address in `<a@b>` or `a@b`, unchanged; null if it is not an address. */
export function addressIn(value: string | null): string | null {
  const [, address] = /^<?([^<>\s@\p{Cc}]+@[^<>\s@\p{Cc}]+)>?$/u.exec(value ?? '') ?? []
  return address !== undefined && address.length <= 320 ? address : null
}
