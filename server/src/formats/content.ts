/**
 * The content of a message, as accepted, stored and composed. The envelope is separate; Bcc recipients are
 * only in the envelope.
 */
export interface Content {
  from: Mailbox
  to: Mailbox[]
  cc: Mailbox[]
  reply_to: Mailbox[]
  subject: string
  text: string | null
  html: string | null
  headers: Header[]
  attachments: Attachment[]
}

export interface Mailbox {
  name: string | null
  /** As in the envelope: the domain in lower-case A-labels, the local part possibly in UTF-8 (RFC 6531). */
  address: string
}

export interface Header {
  name: string
  value: string
}

export interface Attachment {
  filename: string
  content_type: string
  /** In base64. */
  content: string
  /** Referenced by `cid:` URLs in the HTML. */
  content_id: string | null
}

/** `fault` completes a sentence that begins with the name of the field. */
type Fault = { fault: string }

const maxHeaders = 50
const maxNameLength = 100
const maxValueLength = 2000
// A line is folded only at spaces and has at most 998 octets (RFC 5322 §2.1.1), including the name.
const maxWordLength = 800
// Folding a long run of spaces could produce a line of only spaces, and some readers treat such a line as
// the end of the header.
const maxSpaces = 20

// Fields that composition writes.
const composed =
  /^(?:from|to|cc|bcc|sender|reply-to|subject|date|message-id|mime-version|content-.*|x-postern-.*)$/i

// Trace fields, which servers add; fields that providers treat as instructions; and fields that make the
// recipient's server send mail to an address chosen by the sender.
const reserved = new RegExp(
  [
    '^(?:return-path|received|received-spf|delivered-to|delivery-date|apparently-to|envelope-(?:to|from))$',
    '^(?:x-original-to|x-envelope-(?:to|from)|original-recipient|original-from|original-subject)$',
    '^(?:dkim-signature|domainkey-signature|authentication-results|arc-.*|resent-.*|x-ses-.*)$',
    '^(?:errors-to|return-receipt-to|disposition-notification-.*|generate-delivery-report|x-confirm-reading-to)$',
  ].join('|'),
  'i',
)

/** Fields that senders cannot set: the API rejects them, and they are removed from submitted mail. */
export const isReservedHeader = (name: string): boolean => reserved.test(name)

// These contain identifiers and addresses, not text: an encoded word (RFC 2047 §5) would be read as part of
// them.
const structured =
  /^(?:in-reply-to|references|list-.*|feedback-id|precedence|auto-submitted|importance|priority|otp-token)$/i

/**
 * Checks custom headers and adds List-Unsubscribe-Post (RFC 8058) if List-Unsubscribe has an HTTPS URL.
 *
 * Headers that can occur only once are rejected if repeated (RFC 5322 §3.6).
 */
export function checkHeaders(headers: readonly Header[]): Header[] | Fault {
  if (headers.length > maxHeaders) return { fault: `must have at most ${maxHeaders} entries` }
  const seen = new Set<string>()
  for (const { name, value } of headers) {
    const fault = nameFault(name, seen) ?? valueFault(name, value)
    if (fault !== undefined) return { fault }
    seen.add(name.toLowerCase())
  }
  const all = withOneClick(headers)
  // Stored headers are checked again when the message is composed.
  return all.length > maxHeaders
    ? { fault: `must have at most ${maxHeaders} entries, including List-Unsubscribe-Post` }
    : all
}

function nameFault(name: string, seen: ReadonlySet<string>): string | undefined {
  // RFC 5322 §3.6.8: printable ASCII except the colon.
  if (name === '' || name.length > maxNameLength || !/^[\x21-\x39\x3b-\x7e]+$/.test(name)) {
    return `must have names of 1 to ${maxNameLength} printable ASCII characters without spaces and colons`
  }
  if (composed.test(name) || reserved.test(name)) return `must not set "${name}", which senders cannot set`
  if (structured.test(name) && seen.has(name.toLowerCase())) return `must not set "${name}" twice`
  return undefined
}

function valueFault(name: string, value: string): string | undefined {
  const fault = (why: string) => `has a value of "${name}" that ${why}`
  if (value.trim() === '') return fault('is empty')
  if (value.length > maxValueLength) return fault(`has more than ${maxValueLength} characters`)
  if (/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(value)) return fault('has a line break or a control character')
  if (/ {21}/.test(value)) return fault(`has more than ${maxSpaces} consecutive spaces`)
  const isAscii = /^[\x20-\x7e]*$/.test(value)
  if (!isAscii && structured.test(name)) return fault('is not ASCII')
  if (isAscii && /[^ ]{801}/.test(value))
    return fault(`has more than ${maxWordLength} characters without a space`)
  return undefined
}

/**
 * RFC 8058 §3.1: without this header no client offers one-click unsubscribe, and some providers reject bulk
 * mail.
 */
function withOneClick(headers: readonly Header[]): Header[] {
  const has = (name: string) => headers.find((header) => header.name.toLowerCase() === name)
  const canPost = /<https:\/\/[^\s<>]+>/i.test(has('list-unsubscribe')?.value ?? '')
  if (!canPost || has('list-unsubscribe-post')) return [...headers]
  return [...headers, { name: 'List-Unsubscribe-Post', value: 'List-Unsubscribe=One-Click' }]
}

export const maxAttachments = 50
export const maxFilenameLength = 200
export const maxContentIdLength = 200
// RFC 2045 §5.1, with parameters that are plain tokens or quoted strings without escapes.
const token = "[\\w!#$%&'*+.^`{|}~-]{1,80}"
const contentType = new RegExp(
  `^${token}/${token}(?: ?; ?${token}=(?:${token}|"[^"\\\\\\p{C}\\P{ASCII}]{0,80}")){0,8}$`,
  'u',
)
const isBase64 = (text: string): boolean => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)

const isContentId = (text: string): boolean =>
  text.length <= maxContentIdLength && /^[\x21-\x3b\x3d\x3f-\x7e]+$/.test(text)

/** Undefined if all attachments are valid. */
export function attachmentsFault(attachments: readonly Attachment[]): string | undefined {
  if (attachments.length > maxAttachments) return `must have at most ${maxAttachments} entries`
  for (const { filename, content_type, content, content_id } of attachments) {
    if (filename === '' || filename.length > maxFilenameLength || /[\p{Cc}\p{Cs}/\\]/u.test(filename)) {
      return `must have file names of 1 to ${maxFilenameLength} characters without slashes and control characters`
    }
    const fault = (why: string) => `has "${filename}", whose ${why}`
    if (!contentType.test(content_type))
      return fault('content type is not valid; use the form application/pdf')
    if (/^(?:multipart|message)\//i.test(content_type)) {
      return fault('content type is composite; send it as application/octet-stream')
    }
    if (!isBase64(content)) return fault('content is not base64')
    if (content_id !== null && !isContentId(content_id)) {
      return fault(
        `content id is not 1 to ${maxContentIdLength} printable ASCII characters without <, > and spaces`,
      )
    }
  }
  return undefined
}

/** Whether the message requires SMTPUTF8 (RFC 6531): an address in its header is not ASCII. */
export function needsUtf8({ from, to, cc, reply_to }: Content): boolean {
  return [from, ...to, ...cc, ...reply_to].some(({ address }) => /[^\x20-\x7e]/.test(address))
}
