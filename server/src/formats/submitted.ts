import { isAscii, isUtf8 } from 'node:buffer'
import { type Address, addressParser, decodeWords } from 'postal-mime'
import { addressText, readInternationalAddress } from './address.ts'
import { type Composition, fromField } from './compose.ts'
import { isReservedHeader, type Mailbox } from './content.ts'
import {
  type Field,
  type HeaderBounds,
  headerEnd,
  joinFields,
  type SplitHeader,
  splitFields,
  storedBounds,
  submittedBounds,
  unfolded,
} from './header.ts'
import { lineFault } from './line-limits.ts'
import { readMailbox } from './mailbox.ts'

/**
 * A message submitted over SMTP (RFC 6409), made safe to sign and send on behalf of the domain in its From.
 * The body is not changed, and the header is changed as little as possible:
 *
 *   rejected   text that mail readers interpret differently: malformed lines, duplicates of fields that can occur
 *              only once, a From that is not exactly one mailbox
 *   rewritten  From, using its parsed value, so that text that parsers interpret differently is not sent
 *   removed    Bcc, Sender, and fields that senders cannot set (isReservedHeader)
 *   added      a Received field now; Date, Message-ID and X-Postern-Ref when the message is sent (`completeMime`)
 */
export interface Submitted {
  from: Mailbox
  /** Decoded, for display. */
  subject: string
  /** Addresses in lower case. */
  to: ReadonlySet<string>
  cc: ReadonlySet<string>
  /** From `X-Postern-Tag`, separated by commas. */
  tags: string[]
  /** From `X-Postern-Metadata`, each `name=value`. */
  metadata: [name: string, value: string][]
  mime: Buffer
}

/** `fault` is a sentence. `from` is set as soon as From has been parsed. */
export type ReadSubmitted = Submitted | { fault: string; from: Mailbox | null }

export interface Arrival {
  /** The client declared SMTPUTF8 (RFC 6531). */
  allowsUtf8: boolean
  /** Host and time for the Received field, which does not reveal the client. */
  host: string
  at: Date
}

// RFC 5322 §3.6, RFC 2045 and others: at most one. Readers and signers differ in which one they use if there
// are two.
const single = new Set(
  [
    'from to cc reply-to subject date message-id in-reply-to references mime-version content-type',
    'content-transfer-encoding content-id content-description content-disposition',
    'list-id list-unsubscribe list-unsubscribe-post feedback-id auto-submitted',
  ]
    .join(' ')
    .split(' '),
)

// ASCII control characters are found when the header is split. Some readers treat these characters as line
// endings.
const wideControls = /[\x80-\x9f\u2028\u2029]/

// RFC 5321 §6.3.
const maxHops = 50

export function readSubmitted(raw: Buffer, arrival: Arrival): ReadSubmitted {
  const parts = splitMail(raw, submittedBounds)
  if ('fault' in parts) return { fault: `The message ${parts.fault}.`, from: null }
  const from = senderOf(parts.fields)
  if ('fault' in from) return { fault: from.fault, from: null }
  const wrong = headerFault(parts.fields, arrival)
  if (wrong !== undefined) return { fault: wrong, from }
  const mime = rewrite(parts, from, arrival)
  // A message that could not be sent later is not accepted.
  const kept = splitFields(mime, storedBounds)
  if ('fault' in kept) return { fault: `The message ${kept.fault}.`, from }
  return { from, ...displayFieldsOf(parts.fields), mime }
}

/** The header is checked first, because its size is bounded. */
function splitMail(mime: Buffer, bounds: HeaderBounds): SplitHeader | { fault: string } {
  const parts = splitFields(mime, bounds)
  const fault = 'fault' in parts ? undefined : lineFault(mime)
  return fault === undefined ? parts : { fault }
}

/** One From with one mailbox, so all readers show the same sender. */
function senderOf(fields: readonly Field[]): Mailbox | { fault: string } {
  const [from, second] = fields.filter(({ name }) => name === 'from')
  if (!from) return { fault: 'The message has no From.' }
  if (second) return { fault: 'The message has more than one From.' }
  // The obsolete form ada@example.com (Ada). A comment that a reader could interpret as an address is not
  // accepted as a name.
  const [, address, comment] = /^([^\s<>()"\\,;:]+) \(([^()\\<>@,;:"]*)\)$/.exec(unfolded(from)) ?? []
  const read = readMailbox(address ?? unfolded(from))
  if ('fault' in read) return { fault: `From ${read.fault}.` }
  return { ...read, name: displayText(comment ?? read.name ?? '') || null }
}

function headerFault(fields: readonly Field[], { allowsUtf8 }: Arrival): string | undefined {
  const seen = new Set<string>()
  for (const { name } of fields) {
    if (single.has(name) && seen.has(name)) return `The message has more than one ${name} field.`
    seen.add(name)
  }
  if (fields.filter(({ name }) => name === 'received').length >= maxHops) {
    return `Routing loop detected: the message has ${maxHops} Received fields.`
  }
  const header = Buffer.from(fields.map(({ raw }) => raw).join(), 'latin1')
  if (isAscii(header)) return undefined
  if (!allowsUtf8) {
    return 'The header is not ASCII: encode it (RFC 2047), or submit the message with SMTPUTF8 (RFC 6531).'
  }
  if (!isUtf8(header)) return 'The header is neither ASCII nor UTF-8.'
  return wideControls.test(header.toString())
    ? 'The message has a control character in its header.'
    : undefined
}

function displayFieldsOf(fields: readonly Field[]) {
  const values = (wanted: string) => fields.filter(({ name }) => name === wanted).map(unfolded)
  return {
    subject: displayText(values('subject')[0] ?? ''),
    to: addressesOf(values('to')),
    cc: addressesOf(values('cc')),
    tags: values('x-postern-tag')
      .flatMap((value) => value.split(','))
      .map((tag) => tag.trim())
      .filter((tag) => tag !== ''),
    metadata: values('x-postern-metadata').map((text): [string, string] => {
      const value = displayText(text)
      const at = value.indexOf('=')
      return at < 0 ? [value, ''] : [value.slice(0, at).trim(), value.slice(at + 1).trim()]
    }),
  }
}

// Parsing addresses takes up to 3 ms per KiB (`a:a:a:…`) and blocks the event loop.
const maxReadLength = 8 * 1024
const maxDisplayLength = 998

/** Decodes encoded words, and removes characters that databases or terminals do not accept. */
export const displayText = (value: string): string =>
  decodeWords(value.slice(0, maxReadLength))
    .toWellFormed()
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
    .slice(0, maxDisplayLength)
    .toWellFormed()

/** Only addresses that are valid in an envelope. */
function addressesOf(values: readonly string[]): Set<string> {
  const found = values
    .flatMap((value) => addressParser(beginningOf(value)))
    .flatMap((one: Address) => one.group ?? [one])
  return new Set(
    found.flatMap(({ address }) => {
      const read = readInternationalAddress(address)
      return 'fault' in read ? [] : [addressText(read).toLowerCase()]
    }),
  )
}

/** The part that is parsed, cut at a comma. */
const beginningOf = (list: string): string =>
  list.length <= maxReadLength ? list : list.slice(0, list.lastIndexOf(',', maxReadLength) + 1)

const isKept = ({ name, raw }: Field): boolean => {
  if (name === 'received') return true
  if (name === 'bcc' || name === 'sender' || name.startsWith('x-postern-') || isReservedHeader(name))
    return false
  // Empty fields would prevent valid ones from being added.
  return !(name === 'date' || name === 'message-id') || unfolded({ name, raw }) !== ''
}

function rewrite({ fields, body }: SplitHeader, from: Mailbox, { host, at }: Arrival): Buffer {
  const received = `Received: from submission by ${host} with ESMTPSA;\r\n ${dateText(at)}`
  const sender = Buffer.from(fromField(from)).toString('latin1')
  const kept = fields.filter(isKept).map(({ name, raw }) => (name === 'from' ? sender : raw))
  return joinFields([received, ...kept], body)
}

/**
 * RFC 6409 §8: adds required fields that the sender omitted. Deterministic: equal input produces equal bytes.
 */
export function completeMime(mime: Buffer, { messageId, domain, date, ref }: Composition): Buffer {
  // The message was checked at acceptance. If it fails here, it must not be sent.
  const parts = splitMail(mime, storedBounds)
  if ('fault' in parts) throw new Error(`message ${messageId} ${parts.fault}`)
  const has = (wanted: string) => parts.fields.some(({ name }) => name === wanted)
  return joinFields(
    [
      ...parts.fields.map(({ raw }) => raw),
      ...(has('date') ? [] : [`Date: ${dateText(date)}`]),
      ...(has('message-id') ? [] : [`Message-ID: <${messageId}@${domain}>`]),
      ...(ref === undefined ? [] : [`X-Postern-Ref: ${ref}`]),
    ],
    parts.body,
  )
}

/** Whether the message requires SMTPUTF8 (RFC 6531). */
export const hasUtf8Header = (mime: Buffer): boolean =>
  !isAscii(mime.subarray(0, headerEnd(mime, storedBounds.bytes)))

/** RFC 5322 §3.3. */
const dateText = (date: Date): string => date.toUTCString().replace('GMT', '+0000')
