// Trace fields of inbound mail: loop detection, limits, and the added fields.

import { type Field, headerEnd, unfolded } from './header.ts'
import { displayText } from './submitted.ts'

/** The size limit of the header. */
export const inboundHeaderBytes = 256 * 1024
// RFC 5321 §6.3 suggests at least 100; legitimate mail has fewer than a third of that.
const maxHops = 30
/**
 * A longer run of white space exceeds the line length limit of RFC 5322 §2.1.1 or consists of empty lines.
 * Trimming it with a regular expression takes quadratic time: 50,000 spaces in a signature took mailauth 15
 * s.
 */
const maxSpaces = 998
/** Contains the address for which the message was forwarded. */
const marker = 'x-postern-forwarded'

export type TraceFault = 'loop' | 'nul' | 'header'

/** The reason why a message to these addresses (in lower case) is rejected, regardless of its routes. */
export function traceFault(raw: Buffer, recipients: readonly string[]): TraceFault | undefined {
  // Some MTAs drop NUL: `<CRLF><NUL>.<CRLF>` would then end the message prematurely when it is forwarded.
  if (raw.includes(0)) return 'nul'
  const end = headerEnd(raw, inboundHeaderBytes)
  if (end === undefined || longestSpace(raw.toString('latin1', 0, end)) > maxSpaces) return 'header'
  const fields = fieldsOf(raw)
  const isLooped = fields.some(
    (field) => field.name === marker && recipients.includes(unfolded(field).toLowerCase()),
  )
  return isLooped || fields.filter(({ name }) => name === 'received').length > maxHops ? 'loop' : undefined
}

/** The length of the longest run of white space. */
export function longestSpace(text: string): number {
  let longest = 0
  for (const [run] of text.matchAll(/[ \t\r\n]+/g)) longest = Math.max(longest, run.length)
  return longest
}

/** From and Subject, for display. */
export function displayFields(raw: Buffer): { from: string; subject: string } {
  const fields = fieldsOf(raw)
  const textOf = (wanted: string) => {
    const field = fields.find(({ name }) => name === wanted)
    return field ? displayText(unfolded(field)) : ''
  }
  return { from: textOf('from'), subject: textOf('subject') }
}

/** Parsed leniently: inbound mail need not be well formed. */
const fieldsOf = (raw: Buffer): Field[] =>
  raw
    .toString('latin1', 0, headerEnd(raw, inboundHeaderBytes))
    .split(/\r\n(?![ \t])/)
    .map((field) => ({
      name: (/^([\x21-\x39\x3b-\x7e]+)[ \t]*:/.exec(field)?.[1] ?? '').toLowerCase(),
      raw: field,
    }))

export interface Hop {
  /** The name in the client's EHLO or HELO. */
  helo: string
  ip: string
  /** This installation's host name. */
  by: string
  isTls: boolean
  isUtf8: boolean
  /** This installation's id for the message. */
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

/** For loop detection. */
export const forwardedField = (recipient: string): string => `X-Postern-Forwarded: ${recipient}\r\n`
