/**
 * Finds references to messages in text that a person pasted: a header as mail clients show it, a report (ARF, DSN), a line of
 * an MTA's log, or a single reference. The text is searched for tokens and is not parsed as a message, because clients wrap,
 * indent and annotate what they show.
 *
 * The text may be hostile. Every regular expression matches a bounded number of characters at each position, so the
 * search takes linear time, and the number of references is bounded.
 */
export interface References {
  /** What may be the local part of a signed return path (formats/verp.ts), in lower case. */
  tokens: string[]
  /** UUIDs of version 7, as in a Message-ID or an envelope id. */
  messages: MessageReference[]
  /** Ids of MTAs and of Amazon SES. */
  queueIds: string[]
  /** Addresses of recipients; if no field names a recipient, all addresses. */
  addresses: string[]
  /** The days in the text, each at midnight UTC. */
  days: Date[]
}

export interface MessageReference {
  id: string
  /** In an envelope id. */
  recipientNo: number | null
}

const atMost = { tokens: 2_000, messages: 50, queueIds: 50, addresses: 10, days: 5 }
const tokenPrefix = 'bounce-'
const tokenLength = 55
/** `a@b.c`, and queue ids. */
const shortestReference = 5

export function referencesIn(text: string): References {
  // A soft line break (RFC 2045 §6.7) may divide a token, but at the end of other lines, `=` belongs to the text.
  const forms = [text, text.replaceAll(/=\r?\n/g, '')].map((form) => form.toLowerCase())
  const lines = text
    .replaceAll(/\r?\n[ \t]/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    // Most lines of hostile text are shorter than any reference.
    .filter((line) => line.length >= shortestReference)
  return {
    tokens: first(atMost.tokens, forms.flatMap(tokensIn)),
    messages: messagesIn(forms),
    queueIds: first(atMost.queueIds, [...queueIdsIn(lines), ...sesIdsIn(text)]),
    addresses: first(atMost.addresses, addressesIn(lines)),
    days: first(
      atMost.days,
      daysIn(lines).map((day) => day.getTime()),
    ).map((day) => new Date(day)),
  }
}

const first = <T>(count: number, found: readonly T[]): T[] => [...new Set(found)].slice(0, count)

/** A token can follow any character: a forwarder that rewrites senders (SRS) prefixes the local part. */
function tokensIn(text: string): string[] {
  const found: string[] = []
  for (let at = text.indexOf(tokenPrefix); at >= 0; at = text.indexOf(tokenPrefix, at + 1)) {
    const token = text.slice(at, at + tokenLength)
    if (/^bounce-[a-z2-7]{48}$/.test(token)) found.push(token)
  }
  return found
}

const uuid7 =
  /(?<![\w-])([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})(?:\.(\d{1,3})\.\d{1,5})?(?![\w-])/g

function messagesIn(forms: readonly string[]): MessageReference[] {
  const found = new Map<string, MessageReference>()
  for (const form of forms) {
    for (const [, id = '', no] of form.matchAll(uuid7)) {
      if (found.size === atMost.messages) break
      found.set(`${id} ${no}`, { id, recipientNo: no === undefined ? null : Number(no) })
    }
  }
  return [...found.values()]
}

const queueIdForms = [
  // Received: … with ESMTPS id 4XbW5L3zqT; Postfix and KumoMTA: queued as, id=, ids=; RFC 3464 extensions: X-…-Queue-ID. The
  // `id` in the query of a URL can be a secret.
  /(?<![\w.?&;-])(?:ids?[= ]|queued as |[\w-]{0,20}queue-id: ?)<?([\w.-]{5,64})/gi,
  // Logs of Postfix, sendmail and Exim: the id after the process or the time.
  /(?:\]: |\d\d:\d\d:\d\d )([\w-]{5,64})(?=[: ])/g,
]

function queueIdsIn(lines: readonly string[]): string[] {
  const isOneWord = lines.length === 1 && /^[\w.-]{5,64}$/.test(lines[0] ?? '')
  const found = isOneWord
    ? lines
    : lines.flatMap((line) =>
        queueIdForms.flatMap((form) => [...line.matchAll(form)].map(([, id = '']) => id)),
      )
  return found.map((id) => id.replace(/\.{1,64}$/, '')).filter((id) => !isOtherReference(id.toLowerCase()))
}

const isOtherReference = (id: string): boolean =>
  id.includes(tokenPrefix) || id.match(uuid7)?.[0].length === id.length

/** SES replaces the Message-ID with its own id. */
const sesIdsIn = (text: string): string[] =>
  [...text.matchAll(/(?<![\w-])([\w-]{20,64})@(?:[a-z0-9-]{1,40}\.)?amazonses\.com/gi)].map(
    ([, id = '']) => id,
  )

const recipientField =
  /^(?:to|cc|delivered-to|x-original-to|envelope-to|original-rcpt-to|final-recipient|original-recipient|x-failed-recipients)[ \t]?:/i
/** A token that a line break divides. What was looked up is recorded, and must not contain one. */
const partOfToken = /[a-z2-7]{38}/
const address = /(?<![\w.!#$%&'*+/=?^`{|}~-])[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/g

function addressesIn(lines: readonly string[]): string[] {
  const named = lines.filter((line) => recipientField.test(line))
  return (named.length > 0 ? named : lines)
    .flatMap((line) => [...line.matchAll(address)])
    .map(([found]) => found.toLowerCase())
    .filter((found) => !found.includes(tokenPrefix) && !partOfToken.test(found))
}

const dateField = /^(?:date|arrival-date|received-date)[ \t]?:(.{1,100})/i
const calendarDay = /(?<![\w-])(20\d\d-\d\d-\d\d)(?![\d-])/g

function daysIn(lines: readonly string[]): Date[] {
  const fields = lines.flatMap((line) => dateField.exec(line)?.[1] ?? [])
  const written = fields.length > 0 ? fields : lines.flatMap((line) => line.match(calendarDay) ?? [])
  return written
    .map((text) => new Date(text.replace(/\([^)]{0,40}\)/, '').trim()))
    .filter((time) => time.getUTCFullYear() >= 2000 && time.getUTCFullYear() < 3000)
    .map((time) => new Date(time.toISOString().slice(0, 10)))
}
