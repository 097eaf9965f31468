import PostalMime, { type Address, type Email } from 'postal-mime'
import { inboundHeaderBytes } from './trace.ts'

/** A parsed inbound message. All text can be stored: no NUL, no unpaired surrogate. */
export interface ParsedMail {
  from: ParsedAddress | null
  to: ParsedAddress[]
  subject: string | null
  /** ISO 8601, or the original text if it is not a valid date. */
  date: string | null
  message_id: string | null
  headers: { name: string; value: string }[]
  text: string | null
  text_truncated: boolean
  html: string | null
  html_truncated: boolean
  attachments: ParsedAttachment[]
}

interface ParsedAddress {
  name: string
  address: string
}

export interface ParsedAttachment {
  filename: string | null
  content_type: string
  content_id: string | null
  size: number
  /** Null if the attachments together are too large. */
  content: Uint8Array | null
}

const limits = {
  maxNestingDepth: 20,
  maxHeadersSize: 2 * inboundHeaderBytes,
  forceRfc822Attachments: true,
}
const maxTextBytes = 512 * 1024
const maxContentBytes = 256 * 1024
const maxHeadersBytes = 128 * 1024
const maxAttachments = 200
const maxAddresses = 200

/** Rejects mail that is nested too deeply. Takes up to 40 µs per line, so it runs in a worker thread. */
export async function parseMail(raw: Buffer): Promise<ParsedMail> {
  const mail = await PostalMime.parse(raw, limits)
  const [text, html] = [truncate(mail.text), truncate(mail.html)]
  return {
    from: addressesOf(mail.from ? [mail.from] : [])[0] ?? null,
    to: addressesOf(mail.to ?? []),
    subject: mail.subject === undefined ? null : storable(mail.subject),
    date: mail.date === undefined ? null : storable(mail.date),
    message_id: mail.messageId === undefined ? null : storable(mail.messageId),
    headers: headersOf(mail),
    text: text.text,
    text_truncated: text.isTruncated,
    html: html.text,
    html_truncated: html.isTruncated,
    attachments: attachmentsOf(mail),
  }
}

/** The content of one attachment, by index from 0. Undefined if it does not exist. */
export async function attachmentIn(raw: Buffer, no: number): Promise<Uint8Array | undefined> {
  const { attachments } = await PostalMime.parse(raw, limits)
  const found = attachments[no]
  return found && octetsOf(found.content)
}

function attachmentsOf({ attachments }: Email): ParsedAttachment[] {
  const contents = attachments.slice(0, maxAttachments).map(({ content }) => octetsOf(content))
  const areSmall = contents.reduce((sum, { length }) => sum + length, 0) <= maxContentBytes
  return attachments.slice(0, maxAttachments).map(({ filename, mimeType, contentId }, at) => ({
    filename: filename === null ? null : storable(filename),
    content_type: storable(mimeType),
    content_id: contentId === undefined ? null : storable(contentId).replace(/^<(.*)>$/s, '$1'),
    size: contents[at]?.length ?? 0,
    content: (areSmall && contents[at]) || null,
  }))
}

const octetsOf = (content: ArrayBuffer | Uint8Array | string): Uint8Array =>
  typeof content === 'string' ? Buffer.from(content) : new Uint8Array(content)

/** The first fields, up to the size limit. */
function headersOf({ headers }: Email): ParsedMail['headers'] {
  let bytes = 0
  return headers
    .map(({ originalKey, value }) => ({ name: storable(originalKey), value: storable(value) }))
    .filter(({ name, value }) => {
      bytes += Buffer.byteLength(name) + Buffer.byteLength(value)
      return bytes <= maxHeadersBytes
    })
}

const addressesOf = (addresses: readonly Address[]): ParsedAddress[] =>
  addresses
    .flatMap((one) => one.group ?? [one])
    .slice(0, maxAddresses)
    .map(({ name, address }) => ({ name: storable(name), address: storable(address ?? '') }))

function truncate(text: string | undefined): { text: string | null; isTruncated: boolean } {
  if (text === undefined) return { text: null, isTruncated: false }
  const octets = Buffer.from(storable(text))
  if (octets.length <= maxTextBytes) return { text: octets.toString(), isTruncated: false }
  // A truncated character is removed.
  return { text: octets.toString('utf8', 0, maxTextBytes).replace(/\ufffd$/, ''), isTruncated: true }
}

const storable = (text: string): string => text.toWellFormed().replaceAll('\0', '\ufffd')
