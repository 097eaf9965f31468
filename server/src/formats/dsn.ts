import { enhancedStatusOf, replyText } from './enhanced-status.ts'
import { addressIn, type Fields, fieldOf, type Report } from './multipart-report.ts'

/** A delivery status notification (RFC 3464). */
export interface Dsn {
  /** The envelope id with which the message was sent (RFC 3461 §4.4). */
  envid: string | null
  reportingMta: string | null
  recipients: DsnRecipient[]
  /** From the header of the original message, if it was returned. */
  original: { messageId: string | null; ref: string | null }
}

export interface DsnRecipient {
  action: 'failed' | 'delayed' | 'delivered' | 'relayed' | 'expanded'
  /** RFC 3463. The most specific status in the report; x.0.0 if it contains only the action. */
  status: string
  diagnostic: string | null
  remoteMta: string | null
  finalRecipient: string | null
  originalRecipient: string | null
}

const deliveryStatus = /^message\/(?:global-)?delivery-status$/

/** Undefined for a report of another kind, or a notification without a recipient. */
export function dsnIn(report: Report): Dsn | undefined {
  const groups = report.groupsOf(deliveryStatus)
  if (!groups) return undefined
  const recipients = groups.map(recipientOf).filter((recipient) => recipient !== undefined)
  if (recipients.length === 0) return undefined
  const about = (name: string) =>
    groups.map((group) => fieldOf(group, name)).find((value) => value !== null) ?? null
  return {
    envid: about('original-envelope-id'),
    reportingMta: afterType(about('reporting-mta')),
    recipients,
    original: {
      messageId: fieldOf(report.original, 'message-id'),
      ref: fieldOf(report.original, 'x-postern-ref'),
    },
  }
}

/** A group that lacks a recipient or a known action is either the per-message group or unusable. */
function recipientOf(group: Fields): DsnRecipient | undefined {
  const finalRecipient = recipientIn(fieldOf(group, 'final-recipient'))
  const originalRecipient = recipientIn(fieldOf(group, 'original-recipient'))
  const action = actionOf(fieldOf(group, 'action'))
  if (action === undefined || (finalRecipient === null && originalRecipient === null)) return undefined
  const diagnostic = afterType(fieldOf(group, 'diagnostic-code'))
  return {
    action,
    status: statusOf(action, fieldOf(group, 'status'), diagnostic),
    diagnostic: diagnostic === null ? null : replyText(diagnostic),
    remoteMta: afterType(fieldOf(group, 'remote-mta')),
    finalRecipient,
    originalRecipient,
  }
}

function actionOf(value: string | null): DsnRecipient['action'] | undefined {
  const [, word] = /^(failed|failure|delayed|delivered|relayed|expanded)\b/i.exec(value ?? '') ?? []
  if (word === undefined) return undefined
  const action = word.toLowerCase()
  return action === 'failure' ? 'failed' : (action as DsnRecipient['action'])
}

/** Many reports have the status x.0.0 even though the remote server's diagnostic text is more specific. */
function statusOf(action: DsnRecipient['action'], value: string | null, diagnostic: string | null): string {
  const [, given] = /(?:^|[\s(#])([245]\.\d{1,3}\.\d{1,3})(?![\d.])/.exec(value ?? '') ?? []
  const detailed = enhancedStatusOf(diagnostic ?? '')
  const isVague = given === undefined || given.endsWith('.0.0')
  if (isVague && detailed !== null && (given === undefined || detailed[0] === given[0])) return detailed
  return (
    given ??
    { failed: '5.0.0', delayed: '4.0.0', delivered: '2.0.0', relayed: '2.0.0', expanded: '2.0.0' }[action]
  )
}

/** The value after the type, as in `rfc822; a@b` (RFC 3464 §2.1.2). Some reports omit the type. */
const afterType = (value: string | null): string | null =>
  value === null ? null : value.replace(/^[\w.-]{1,40}[ \t]*;[ \t]*/, '').trim() || null

/** RFC 6533 §3: a non-ASCII address can be encoded with `\x{…}`. */
function recipientIn(value: string | null): string | null {
  const isWide = /^utf-8\s*;/i.test(value ?? '')
  const encoded = afterType(value)
  if (!isWide) return addressIn(encoded)
  const read = encoded?.replace(/\\x\{([0-9a-f]{2,6})\}/gi, (whole, hex: string) => {
    const point = Number.parseInt(hex, 16)
    return point > 0x20 && point <= 0x10ffff ? String.fromCodePoint(point) : whole
  })
  return addressIn(read ?? null)
}
