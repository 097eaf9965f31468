import MailComposer from 'nodemailer/lib/mail-composer'
import { encodeWord } from 'nodemailer/lib/mime-funcs'
import { type Attachment, type Content, checkHeaders, type Header, type Mailbox } from './content.ts'
import { lineFault } from './line-limits.ts'

export interface Composition {
  /** The message's own id, a UUID. */
  messageId: string
  /** The domain of the sender, after the @ of the Message-ID. */
  domain: string
  date: Date
  /** The value of `X-Postern-Ref`, for reports that keep nothing else of the header. */
  ref?: string
}

/**
 * Composes the mail (RFC 5322, MIME). Deterministic: equal content and composition give equal bytes.
 *
 * Text is always quoted-printable or base64 and the boundary holds `=_`, which neither can produce (RFC 2045 §6.7):
 * whatever the content says, it cannot end its own part. All of it is 7-bit but for addresses that are not ASCII.
 * Nothing is read from files or addresses.
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

/** The From field of a composed mail, folded, without its last line end. */
export function fromField(from: Mailbox): string {
  const header = new MailComposer({ from: addressOf(from) }).compile().buildHeaders()
  const [field] = /^From:.*(?:\r\n[ \t].*)*/m.exec(header) ?? []
  if (field === undefined) throw new Error('the sender cannot be composed')
  // The library also folds before a long first word, and readers differ in how they treat an empty first line.
  return field.replace(/^From:\r\n[ \t]/, 'From: ')
}

const addressOf = ({ name, address }: Mailbox) => ({ name: name ?? '', address })

/** Used unchanged: otherwise the library would encode a whole value because of a single quote in it. */
const prepared = (value: string) => ({ prepared: true, foldLines: true, value })

const isPlain = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

function headerOf({ name, value }: Header) {
  // The library knows the form of this one, and only takes text for it.
  const isKnown = /^references$/i.test(name)
  return { key: name, value: isPlain(value) && !isKnown ? prepared(value) : value }
}

/** An encoded word keeps what could not be folded otherwise: long words, and spaces that would fill a line. */
function subjectHeader(subject: string) {
  const text = subject.replace(/\p{Cc}+/gu, ' ').trim()
  if (text === '') return []
  const canStand = isPlain(text) && !/ {21}|[^ ]{801}/.test(text) && !text.includes('=?')
  const isLatin = (text.match(/[a-z0-9 ]/gi)?.length ?? 0) * 2 > text.length
  return [{ key: 'Subject', value: prepared(canStand ? text : encodeWord(text, isLatin ? 'Q' : 'B', 52)) }]
}

/** Base64 where more than a sixth of the octets would take three in quoted-printable. */
function encodedText(text: string) {
  const content = text.replace(/\r\n|\r|\n/g, '\r\n')
  const size = Buffer.byteLength(content)
  // A character outside of ASCII has one more octet than units, or two.
  const isBase64Shorter = size - content.length > size / 8
  return { content, contentTransferEncoding: isBase64Shorter ? 'base64' : 'quoted-printable' }
}

function attachmentOf({ filename, content_type, content, content_id }: Attachment) {
  // RFC 2046 §5.2.1: parts within parts must not be base64, and what is not could end the part it is in.
  const isNested = /^(?:multipart|message)\//i.test(content_type)
  return {
    filename: filename.replace(/[\p{Cc}/\\]/gu, '_').replace(/ +/g, ' '),
    contentType: isNested ? 'application/octet-stream' : content_type,
    content: Buffer.from(content, 'base64'),
    contentTransferEncoding: 'base64',
    ...(content_id === null ? {} : { cid: content_id }),
  }
}

/** A fault here was missed at acceptance; such mail must not be sent. */
function wellFormed(mime: Buffer): Buffer {
  const fault = lineFault(mime)
  if (fault !== undefined) throw new Error(`the composed mail ${fault}`)
  const header = mime.toString('latin1', 0, mime.indexOf('\r\n\r\n') + 2)
  if (/\r\n[ \t]+\r\n/.test(header))
    throw new Error('the composed mail has a blank continuation line in its header')
  return mime
}
