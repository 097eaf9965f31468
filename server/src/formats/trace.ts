import { type Field, headerEnd, unfolded } from './header.ts'
import { shown } from './submitted.ts'

/** What a mail that comes in says of the way that it has come, and what is added to that. */
export const inboundHeaderBytes = 256 * 1024
// RFC 5321 §6.3 would have 100; nobody needs a third of that.
const maxHops = 30
/**
 * White space in a row that nobody writes: it would be a line longer than RFC 5322 §2.1.1 allows, or lines of nothing
 * else. Whoever trims by a pattern takes the square of it: 50,000 spaces in a signature took mailauth 15 s.
 */
const maxSpaces = 998
/** Names the address that it was sent on for. */
const marker = 'x-postern-forwarded'

export type TraceFault = 'loop' | 'nul' | 'header'

/** Why a mail to these addresses (in lower case) cannot be taken whatever the routes say. */
export function traceFault(raw: Buffer, recipients: readonly string[]): TraceFault | undefined {
  // There are MTAs that drop a NUL: `<CRLF><NUL>.<CRLF>` would end the mail where it is sent on.
  if (raw.includes(0)) return 'nul'
  const end = headerEnd(raw, inboundHeaderBytes)
  if (end === undefined || longestSpace(raw.toString('latin1', 0, end)) > maxSpaces) return 'header'
  const fields = fieldsOf(raw)
  const isBack = fields.some(
    (field) => field.name === marker && recipients.includes(unfolded(field).toLowerCase()),
  )
  return isBack || fields.filter(({ name }) => name === 'received').length > maxHops ? 'loop' : undefined
}

/** Of all runs of white space, the length of the longest. */
export function longestSpace(text: string): number {
  let longest = 0
  for (const [run] of text.matchAll(/[ \t\r\n]+/g)) longest = Math.max(longest, run.length)
  return longest
}

/** Who it says that it is from, and its subject, for showing. */
export function shownFields(raw: Buffer): { from: string; subject: string } {
  const fields = fieldsOf(raw)
  const said = (wanted: string) => {
    const field = fields.find(({ name }) => name === wanted)
    return field ? shown(unfolded(field)) : ''
  }
  return { from: said('from'), subject: said('subject') }
}

/** Whatever can be taken for one: strangers' mail is not held to the rules, only looked at. */
const fieldsOf = (raw: Buffer): Field[] =>
  raw
    .toString('latin1', 0, headerEnd(raw, inboundHeaderBytes))
    .split(/\r\n(?![ \t])/)
    .map((field) => ({
      name: (/^([\x21-\x39\x3b-\x7e]+)[ \t]*:/.exec(field)?.[1] ?? '').toLowerCase(),
      raw: field,
    }))

export interface Hop {
  /** As the client called itself. */
  helo: string
  ip: string
  /** As we are called. */
  by: string
  isTls: boolean
  isUtf8: boolean
  /** What it is called here. */
  id: string
  at: Date
}

/** RFC 5321 §4.4, RFC 3848 and RFC 6531 §4.3, with its CRLF. */
export function receivedField({ helo, ip, by, isTls, isUtf8, id, at }: Hop): string {
  const name = /^[\w.:[\]-]{1,255}$/.test(helo) ? helo : 'unknown'
  const address = ip.includes(':') ? `[IPv6:${ip}]` : `[${ip}]`
  const protocol = `${isUtf8 ? 'UTF8SMTP' : 'ESMTP'}${isTls ? 'S' : ''}`
  const date = at.toUTCString().replace('GMT', '+0000')
  return `Received: from ${name} (${address})\r\n by ${by} with ${protocol}\r\n id ${id}; ${date}\r\n`
}

/** So that it is known when it comes back. */
export const forwardedField = (recipient: string): string => `X-Postern-Forwarded: ${recipient}\r\n`
