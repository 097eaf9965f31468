/**
 * An event that Amazon SES publishes about a message (event publishing, in the SNS format), reduced to the
 * fields used here. SES may add fields at any time; a field that is missing or has the wrong type is treated
 * as absent.
 */
export interface SesEvent {
  /**
   * As written by SES: Send, Delivery, Bounce, Complaint, DeliveryDelay, Reject, Rendering Failure, Open, …
   */
  type: string
  /** The tag with which the message was sent. */
  mailTag: string | null
  /** Bounce: Permanent, Transient or Undetermined. */
  bounceType: string | null
  /** Bounce and Complaint: the subtype; with some subtypes the message was never sent. */
  subType: string | null
  /** Complaint: the Feedback-Type of the report (RFC 5965). */
  feedbackType: string | null
  /** The recipient's RFC 3463 code; messages are sent to one recipient at a time. */
  status: string | null
  /** The remote system's reply or text, unchanged. */
  diagnostic: string | null
}

/** The name of that tag. SES allows up to 256 ASCII letters, digits, `_` and `-` in names and values. */
export const sesMailTag = 'postern_mail'

type Fields = Record<string, unknown>

/** Undefined if the text is not an SES event. */
export function readSesEvent(text: string): SesEvent | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return undefined
  }
  const event = fieldsOf(parsed)
  const type = textOf(event, 'eventType')
  if (type === null) return undefined
  const [tag] = listOf(fieldsOf(event['mail'], 'tags')[sesMailTag])
  const about = fieldsOf(event[partOf[type] ?? ''])
  const [recipient] = listOf(about[recipientsOf[type] ?? ''])
  return {
    type,
    mailTag: typeof tag === 'string' ? tag : null,
    bounceType: textOf(about, 'bounceType'),
    subType: textOf(about, 'bounceSubType') ?? textOf(about, 'complaintSubType'),
    feedbackType: textOf(about, 'complaintFeedbackType'),
    status: statusOf(textOf(fieldsOf(recipient), 'status')),
    diagnostic:
      textOf(fieldsOf(recipient), 'diagnosticCode') ??
      textOf(about, 'smtpResponse') ??
      textOf(about, 'reason') ??
      textOf(about, 'errorMessage') ??
      textOf(about, 'delayType'),
  }
}

const partOf: Record<string, string> = {
  __proto__: null as never,
  Bounce: 'bounce',
  Complaint: 'complaint',
  Delivery: 'delivery',
  DeliveryDelay: 'deliveryDelay',
  Reject: 'reject',
  'Rendering Failure': 'failure',
}

const recipientsOf: Record<string, string> = {
  __proto__: null as never,
  Bounce: 'bouncedRecipients',
  DeliveryDelay: 'delayedRecipients',
}

/** The object at a path of names; empty if there is none. */
function fieldsOf(value: unknown, ...path: string[]): Fields {
  let at = value
  for (const name of path) at = fieldsOf(at)[name]
  return typeof at === 'object' && at !== null ? (at as Fields) : {}
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

const maxCharacters = 1000

function textOf(fields: Fields, name: string): string | null {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined
  if (typeof value !== 'string') return null
  return (
    value
      .slice(0, maxCharacters)
      .replace(/\p{Cc}+/gu, ' ')
      .trim() || null
  )
}

const statusOf = (text: string | null): string | null =>
  text !== null && /^[245]\.\d{1,3}\.\d{1,3}$/.test(text) ? text : null
