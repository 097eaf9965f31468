import {
  type Attachment,
  attachmentsFault,
  type Content,
  checkHeaders,
  type Mailbox,
} from '../../../formats/content.ts'
import { readMailbox } from '../../../formats/mailbox.ts'
import { PosternError } from '../../../platform/errors.ts'
import { type MessageRequest, maxRecipients } from './wire.ts'

/** A validated message, before the checks that determine whether it can be sent. */
export interface Draft {
  from: string
  subject: string
  /** The stored form: `json` is composed when it is sent; `mime` was composed by the sender. */
  format: 'json' | 'mime'
  content: Buffer
  recipients: Recipient[]
  tags: string[]
  metadata: Record<string, string>
  sendAt: Date | null
  sizeBytes: number
  /** Set for inbound mail that is forwarded unchanged. */
  forwarded?: Forwarded
}

export interface Forwarded {
  /** The original envelope sender; empty for the null sender. */
  envelope_from: string
  /** Received with SMTPUTF8 (RFC 6531). */
  smtputf8: boolean
  /** The sender was authenticated, so bounces are returned to it. */
  is_sender_confirmed: boolean
}

export interface Recipient {
  kind: 'to' | 'cc' | 'bcc'
  address: string
}

/**
 * A validation error is reported only after the sender checks have passed, so it is stored here until then.
 * `senderDomain` is null if `from` could not be parsed.
 */
export type ReadDraft =
  | { draft: Draft; senderDomain: string }
  | { fault: PosternError; senderDomain: string | null }

export const maxMessageBytes = 25 * 1024 * 1024
const maxAheadMs = 30 * 24 * 3600_000

export function readDraft(request: MessageRequest, now: number): ReadDraft {
  let senderDomain: string | null = null
  try {
    const from = mailbox(request.from, 'from')
    senderDomain = domainOf(from.address)
    return { draft: draftOf(request, from, now), senderDomain }
  } catch (error) {
    if (error instanceof PosternError) return { fault: error, senderDomain }
    throw error
  }
}

function draftOf(request: MessageRequest, from: Mailbox, now: number): Draft {
  const to = mailboxes(request.to, 'to')
  const cc = mailboxes(request.cc, 'cc')
  const bcc = mailboxes(request.bcc, 'bcc')
  const content: Content = {
    from,
    to,
    cc,
    reply_to: mailboxes(request.reply_to, 'reply_to'),
    subject: subjectOf(request.subject),
    text: request.text ?? null,
    html: request.html ?? null,
    headers: headersOf(request.headers),
    attachments: attachmentsOf(request.attachments),
  }
  if (content.text === null && content.html === null) {
    throw refuse('A message must contain "text", "html" or both.')
  }
  const sizeBytes = sizeOf(content)
  if (sizeBytes > maxMessageBytes) {
    throw refuse(`The message is larger than ${maxMessageBytes / 1024 / 1024} MiB. Send a link instead.`)
  }
  return {
    from: from.address,
    subject: content.subject,
    format: 'json',
    content: Buffer.from(JSON.stringify(content)),
    recipients: recipientsOf({ to, cc, bcc }),
    tags: request.tags ?? [],
    metadata: request.metadata ?? {},
    sendAt: sendAtOf(request.send_at, now),
    sizeBytes,
  }
}

/** Each address occurs once, even if it is listed more than once. */
function recipientsOf(lists: Record<Recipient['kind'], Mailbox[]>): Recipient[] {
  const byAddress = new Map<string, Recipient>()
  for (const kind of ['to', 'cc', 'bcc'] as const) {
    for (const { address } of lists[kind]) {
      const key = address.toLowerCase()
      if (!byAddress.has(key)) byAddress.set(key, { kind, address })
    }
  }
  if (byAddress.size === 0) throw refuse('The message has no recipient. Set "to", "cc" or "bcc".')
  if (byAddress.size > maxRecipients) {
    throw refuse(
      `The message has ${byAddress.size} recipients; at most ${maxRecipients} are allowed. Send several messages.`,
    )
  }
  return [...byAddress.values()]
}

const mailboxes = (texts: readonly string[] | undefined, field: string): Mailbox[] =>
  (texts ?? []).map((text, index) => mailbox(text, `${field}[${index}]`))

function mailbox(text: string, field: string): Mailbox {
  const read = readMailbox(text)
  if ('fault' in read) throw refuse(`"${field}" ${read.fault}.`)
  return read
}

export const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1)

function subjectOf(subject: string): string {
  if (/\p{Cc}/u.test(subject))
    throw refuse('"subject" contains control characters such as line breaks. Remove them.')
  return subject
}

function headersOf(headers: Record<string, string> | undefined): Content['headers'] {
  if (headers === undefined) return []
  const checked = checkHeaders(Object.entries(headers).map(([name, value]) => ({ name, value })))
  if ('fault' in checked) throw refuse(`"headers" ${checked.fault}.`)
  return checked
}

function attachmentsOf(given: MessageRequest['attachments']): Attachment[] {
  const attachments = (given ?? []).map(({ filename, content, content_type, content_id }) => ({
    filename,
    content,
    content_type: content_type ?? 'application/octet-stream',
    content_id: content_id ?? null,
  }))
  const fault = attachmentsFault(attachments)
  if (fault !== undefined) throw refuse(`"attachments" ${fault}.`)
  return attachments
}

/** Acceptance uses the database's clock to decide whether this time has passed. */
function sendAtOf(text: string | null | undefined, now: number): Date | null {
  if (text == null) return null
  const at = new Date(text)
  if (Number.isNaN(at.getTime()))
    throw refuse('"send_at" is not a valid RFC 3339 timestamp, such as 2026-11-14T09:30:00Z.')
  if (at.getTime() > now + maxAheadMs) throw refuse('"send_at" must be at most 30 days in the future.')
  return at
}

const sizeOf = ({ subject, text, html, headers, attachments }: Content): number =>
  Buffer.byteLength(subject) +
  Buffer.byteLength(text ?? '') +
  Buffer.byteLength(html ?? '') +
  headers.reduce((sum, { name, value }) => sum + name.length + Buffer.byteLength(value) + 4, 0) +
  attachments.reduce((sum, { content }) => sum + content.length, 0)

const refuse = (message: string): PosternError => new PosternError('validation_failed', message)
