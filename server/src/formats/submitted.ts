import { isAscii, isUtf8 } from 'node:buffer'
import { type Address, addressParser, decodeWords } from 'postal-mime'
import { addressText, readInternationalAddress } from './address.ts'
import { type Composition, fromField } from './compose.ts'
import { isForeign, type Mailbox } from './content.ts'
import {
  broughtBounds,
  type Field,
  type HeaderBounds,
  headerEnd,
  joinFields,
  keptBounds,
  type SplitHeader,
  splitFields,
  unfolded,
} from './header.ts'
import { linesFault } from './line-limits.ts'
import { readMailbox } from './mailbox.ts'

/**
 * A mail that somebody composed and submitted by SMTP (RFC 6409), made safe to be signed and sent in the name of the
 * domain in its From. Its body is not touched, and of its header as little as can be:
 *
 *   refused   what readers disagree about: lines that are none, fields that may stand once and stand twice, a From that
 *             is not exactly one mailbox
 *   written   From, from what was read in it: what others may read in it besides is not sent
 *   removed   who gets it blindly (Bcc), who else claims to send it (Sender), and what is no sender's to say (isForeign)
 *   added     a Received field now; Date, Message-ID and X-Postern-Ref when it is sent (`completeMime`)
 */
export interface Submitted {
  from: Mailbox
  /** Decoded, for showing. */
  subject: string
  /** Addresses in lower case. */
  to: ReadonlySet<string>
  cc: ReadonlySet<string>
  /** Of `X-Postern-Tag`, separated by commas. */
  tags: string[]
  /** Of `X-Postern-Metadata`, each `name=value`. */
  metadata: [name: string, value: string][]
  mime: Buffer
}

/** `fault` is a sentence. From is known as soon as it can be read. */
export type ReadSubmitted = Submitted | { fault: string; from: Mailbox | null }

export interface Arrival {
  /** RFC 6531: the client has said that it may not be ASCII. */
  allowsUtf8: boolean
  /** Where it came in, and when, for the Received field. Who brought it is nobody's business but ours. */
  host: string
  at: Date
}

// RFC 5322 §3.6, RFC 2045 and others: one at most. A second one would be read by some and signed by others.
const single = new Set(
  [
    'from to cc reply-to subject date message-id in-reply-to references mime-version content-type',
    'content-transfer-encoding content-id content-description content-disposition',
    'list-id list-unsubscribe list-unsubscribe-post feedback-id auto-submitted',
  ]
    .join(' ')
    .split(' '),
)

// Those of ASCII are found when the header is taken apart. To some readers these end a line.
const wideControls = /[\x80-\x9f\u2028\u2029]/

// RFC 5321 §6.3.
const maxHops = 50

export function readSubmitted(raw: Buffer, arrival: Arrival): ReadSubmitted {
  const parts = wholeParts(raw, broughtBounds)
  if ('fault' in parts) return { fault: `The mail ${parts.fault}.`, from: null }
  const from = senderOf(parts.fields)
  if ('fault' in from) return { fault: from.fault, from: null }
  const wrong = headerFault(parts.fields, arrival)
  if (wrong !== undefined) return { fault: wrong, from }
  const mime = keptOf(parts, from, arrival)
  // What could not be sent is not accepted.
  const kept = splitFields(mime, keptBounds)
  if ('fault' in kept) return { fault: `The mail ${kept.fault}.`, from }
  return { from, ...shownOf(parts.fields), mime }
}

/** The header is bounded, so it is looked at first. */
function wholeParts(mime: Buffer, most: HeaderBounds): SplitHeader | { fault: string } {
  const parts = splitFields(mime, most)
  const fault = 'fault' in parts ? undefined : linesFault(mime)
  return fault === undefined ? parts : { fault }
}

/** One From with one mailbox, so that everybody reads the same sender. */
function senderOf(fields: readonly Field[]): Mailbox | { fault: string } {
  const [from, second] = fields.filter(({ name }) => name === 'from')
  if (!from) return { fault: 'The mail has no From.' }
  if (second) return { fault: 'The mail has more than one From.' }
  // As old programs write it: ada@example.com (Ada). What some reader could take for an address is no name of that kind.
  const [, address, comment] = /^([^\s<>()"\\,;:]+) \(([^()\\<>@,;:"]*)\)$/.exec(unfolded(from)) ?? []
  const read = readMailbox(address ?? unfolded(from))
  if ('fault' in read) return { fault: `From ${read.fault}.` }
  return { ...read, name: shown(comment ?? read.name ?? '') || null }
}

function headerFault(fields: readonly Field[], { allowsUtf8 }: Arrival): string | undefined {
  const seen = new Set<string>()
  for (const { name } of fields) {
    if (single.has(name) && seen.has(name)) return `The mail has more than one ${name} field.`
    seen.add(name)
  }
  if (fields.filter(({ name }) => name === 'received').length >= maxHops) {
    return `The mail has come through ${maxHops} servers already; it goes in a circle.`
  }
  const header = Buffer.from(fields.map(({ raw }) => raw).join(), 'latin1')
  if (isAscii(header)) return undefined
  if (!allowsUtf8) {
    return 'The header is not ASCII: encode it (RFC 2047), or submit the mail with SMTPUTF8 (RFC 6531).'
  }
  if (!isUtf8(header)) return 'The header is neither ASCII nor UTF-8.'
  return wideControls.test(header.toString()) ? 'The mail has a control character in its header.' : undefined
}

function shownOf(fields: readonly Field[]) {
  const values = (wanted: string) => fields.filter(({ name }) => name === wanted).map(unfolded)
  return {
    subject: shown(values('subject')[0] ?? ''),
    to: addressesOf(values('to')),
    cc: addressesOf(values('cc')),
    tags: values('x-postern-tag')
      .flatMap((value) => value.split(','))
      .map((tag) => tag.trim())
      .filter((tag) => tag !== ''),
    metadata: values('x-postern-metadata').map((text): [string, string] => {
      const value = shown(text)
      const at = value.indexOf('=')
      return at < 0 ? [value, ''] : [value.slice(0, at).trim(), value.slice(at + 1).trim()]
    }),
  }
}

// Reading addresses takes up to 3 ms per KiB (`a:a:a:…`), and nothing else is done in the meantime.
const maxReadLength = 8 * 1024
const maxShownLength = 998

/** Encoded words decoded; without what a database or a terminal would stumble over. */
export const shown = (value: string): string =>
  decodeWords(value.slice(0, maxReadLength))
    .toWellFormed()
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
    .slice(0, maxShownLength)
    .toWellFormed()

/** Of those that can be in an envelope; what else stands there is for people. */
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

/** As far as it is read, without an address that is cut in two. */
const beginningOf = (list: string): string =>
  list.length <= maxReadLength ? list : list.slice(0, list.lastIndexOf(',', maxReadLength) + 1)

const isKept = ({ name, raw }: Field): boolean => {
  if (name === 'received') return true
  if (name === 'bcc' || name === 'sender' || name.startsWith('x-postern-') || isForeign(name)) return false
  // Empty, these would stand in the way of true ones.
  return !(name === 'date' || name === 'message-id') || unfolded({ name, raw }) !== ''
}

function keptOf({ fields, body }: SplitHeader, from: Mailbox, { host, at }: Arrival): Buffer {
  const received = `Received: from submission by ${host} with ESMTPSA;\r\n ${dateText(at)}`
  const sender = Buffer.from(fromField(from)).toString('latin1')
  const kept = fields.filter(isKept).map(({ name, raw }) => (name === 'from' ? sender : raw))
  return joinFields([received, ...kept], body)
}

/** RFC 6409 §8: what a mail must have and the sender left out. The same mail and composition give the same bytes. */
export function completeMime(mime: Buffer, { messageId, domain, date, ref }: Composition): Buffer {
  // It was looked at when it was accepted. What fails here must not reach another machine.
  const parts = wholeParts(mime, keptBounds)
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

/** Whether it can only travel where RFC 6531 is spoken. */
export const hasUtf8Header = (mime: Buffer): boolean =>
  !isAscii(mime.subarray(0, headerEnd(mime, keptBounds.bytes)))

/** RFC 5322 §3.3. */
const dateText = (date: Date): string => date.toUTCString().replace('GMT', '+0000')
