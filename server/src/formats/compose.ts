import MailComposer from 'nodemailer/lib/mail-composer'
import { encodeWord } from 'nodemailer/lib/mime-funcs'
import { type Attachment, type Content, checkHeaders, type Header, type Mailbox } from './content.ts'
import { lineFault } from './line-limits.ts'

export interface Composition {
  /** The message's id, a UUID. */
  messageId: string
  /** The sender's domain, used after the @ in the Message-ID. */
  domain: string
  date: Date
  /** The value of `X-Postern-Ref`, for reports that include nothing else from the header. */
  ref?: string
}

/**
 * Composes the message (RFC 5322, MIME). Deterministic: equal content and composition produce equal bytes.
 *
 * Text is always quoted-printable or base64, and the boundary contains `=_`, which neither can produce (RFC
 * 2045 §6.7), so no content can end its own part. The message is 7-bit except for non-ASCII addresses. No
 * files are read and no URLs are fetched.
 */
export async function composeMime(content: Content, composition: Composition): Promise<Buffer> {
  const { messageId, domain, date, ref } = composition
  const headers = checkHeaders(content.headers)
  if ('fault' in headers)
    throw new Error(`the headers of message ${messageId} were not checked: ${headers.fault}`)
  const mail = new MailComposer({
    from: addressOf(content.from),
    to: content.to.map(addressOf),
    cc: content.cc.map(addressOf),
    replyTo: content.reply_to.map(addressOf),
    messageId: `<${messageId}@${domain}>`,
    date,
    headers: [
      ...headers.map(headerOf),
      ...subjectHeader(content.subject),
      ...(ref === undefined ? [] : [{ key: 'X-Postern-Ref', value: prepared(ref) }]),
    ],
    ...(content.text ? { text: encodedText(content.text) } : {}),
    ...(content.html ? { html: encodedText(content.html) } : {}),
    attachments: content.attachments.map(attachmentOf),
    baseBoundary: messageId.replaceAll('-', ''),
    boundaryPrefix: '=_postern',
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return wellFormed(await mail.compile().build())
}

/** The From field of a composed message, folded, without the final line ending. */
export function fromField(from: Mailbox): string {
  const header = new MailComposer({ from: addressOf(from) }).compile().buildHeaders()
  const [field] = /^From:.*(?:\r\n[ \t].*)*/m.exec(header) ?? []
  if (field === undefined) throw new Error('the sender cannot be composed')
  // The library also folds before a long first word, and readers differ in how they treat an empty first
  // line.
  return field.replace(/^From:\r\n[ \t]/, 'From: ')
}

const addressOf = ({ name, address }: Mailbox) => ({ name: name ?? '', address })

/** The value is used unchanged: otherwise a single quote would make the library encode all of it. */
const prepared = (value: string) => ({ prepared: true, foldLines: true, value })

const isPlain = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

function headerOf({ name, value }: Header) {
  // The library has special handling for this field and accepts only text for it.
  const isKnown = /^references$/i.test(name)
  return { key: name, value: isPlain(value) && !isKnown ? prepared(value) : value }
}

/**
 * An encoded word preserves text that could not otherwise be folded: long words, and spaces that would fill a
 * line.
 */
function subjectHeader(subject: string) {
  const text = subject.replace(/\p{Cc}+/gu, ' ').trim()
  if (text === '') return []
  const canStand = isPlain(text) && !/ {21}|[^ ]{801}/.test(text) && !text.includes('=?')
  const isLatin = (text.match(/[a-z0-9 ]/gi)?.length ?? 0) * 2 > text.length
  return [{ key: 'Subject', value: prepared(canStand ? text : encodeWord(text, isLatin ? 'Q' : 'B', 52)) }]
}

/** Uses base64 if more than a sixth of the octets would each take three octets in quoted-printable. */
function encodedText(text: string) {
  const content = text.replace(/\r\n|\r|\n/g, '\r\n')
  const size = Buffer.byteLength(content)
  // A non-ASCII character has one or two more octets than UTF-16 code units.
  const isBase64Shorter = size - content.length > size / 8
  return { content, contentTransferEncoding: isBase64Shorter ? 'base64' : 'quoted-printable' }
}

function attachmentOf({ filename, content_type, content, content_id }: Attachment) {
  // RFC 2046 §5.2.1: nested parts must not be base64, and without base64 they could end the enclosing part.
  const isNested = /^(?:multipart|message)\//i.test(content_type)
  return {
    filename: filename.replace(/[\p{Cc}/\\]/gu, '_').replace(/ +/g, ' '),
    contentType: isNested ? 'application/octet-stream' : content_type,
    content: Buffer.from(content, 'base64'),
    contentTransferEncoding: 'base64',
    ...(content_id === null ? {} : { cid: content_id }),
  }
}

/** A fault found here was missed at acceptance; the message must not be sent. */
function wellFormed(mime: Buffer): Buffer {
  const fault = lineFault(mime)
  if (fault !== undefined) throw new Error(`the composed message ${fault}`)
  const header = mime.toString('latin1', 0, mime.indexOf('\r\n\r\n') + 2)
  if (/\r\n[ \t]+\r\n/.test(header))
    throw new Error('the composed message has a blank continuation line in its header')
  return mime
}
