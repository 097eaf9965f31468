import { enhancedStatusOf, replyText } from './enhanced-status.ts'
import { addressIn, fieldOf, headerFieldsOf } from './multipart-report.ts'

/**
 * A KumoMTA log record (docs.kumomta.com/reference/log_record), reduced to the fields used here. KumoMTA adds
 * fields and types with its releases; a field that is missing or has the wrong type is treated as absent.
 */
export interface KumoLogRecord {
  /** As written by KumoMTA: Reception, Delivery, Bounce, TransientFailure, Expiration, AdminBounce, OOB, … */
  type: string
  /**
   * The record is about the delivery of a log record, not of a message. Its sender and recipient are copied from the
   * record that it delivers. KumoMTA does not pass such records to log hooks, but writes them to its log files.
   */
  isAboutLogRecord: boolean
  /**
   * The envelope sender of the reported message. A Feedback record has the envelope of the complaint, so all addresses
   * that can be the reported message's return path are listed.
   */
  returnPaths: string[]
  /** The reply code (RFC 5321 §4.2). */
  code: number | null
  /** RFC 3463 code, such as 5.1.1. */
  status: string | null
  /** The reply of the remote server, or KumoMTA's own text. */
  diagnostic: string | null
  /** Feedback: the Feedback-Type of the complaint (RFC 5965), in lower case. */
  feedbackType: string | null
  /**
   * Identifies the record: the same whenever the record is published, and different for every other record. It does
   * not cover the whole record, because the fields `headers` and `meta` depend on the configuration of the log hook
   * or log file, and Lua encodes the fields of an object in any order.
   */
  identity: string
}

/** Undefined if the value, which comes from a JSON parser, is not a log record. Never throws. */
export function readKumoLogRecord(record: unknown): KumoLogRecord | undefined {
  const type = textOf(memberOf(record, 'type'))
  const id = textOf(memberOf(record, 'id'))
  if (type === null || id === null) return undefined
  const reply = replyOf(memberOf(record, 'response'))
  return {
    type,
    isAboutLogRecord: memberOf(record, 'reception_protocol') === 'LogRecord',
    returnPaths: type === 'Feedback' ? reportedPathsOf(record) : pathsOf(memberOf(record, 'sender')),
    ...reply,
    feedbackType: feedbackTypeOf(memberOf(record, 'feedback_report', 'feedback_type')),
    identity: JSON.stringify([
      // `id` is the message in KumoMTA's spool.
      ...[type, id],
      // Each record of a message has its own time. Since 2025.10.06, `event_time` has fractions of a second.
      ...[scalarOf(memberOf(record, 'timestamp')), scalarOf(memberOf(record, 'event_time'))],
      // Distinguish two attempts within a second.
      ...[scalarOf(memberOf(record, 'num_attempts')), reply.code, reply.status],
      scalarOf(memberOf(record, 'response', 'content')),
      // KumoMTA writes an OOB record for each recipient of a bounce. They have the same id and often the same time.
      scalarOf(memberOf(record, 'recipient')),
    ]),
  }
}

function replyOf(response: unknown): Pick<KumoLogRecord, 'code' | 'status' | 'diagnostic'> {
  const code = numberIn(memberOf(response, 'code'), 200, 599)
  const content = textOf(memberOf(response, 'content'))
  const status = statusOf(enhancedCodeOf(response), enhancedStatusOf(joined(code, content)))
  // KumoMTA removes the enhanced status code from the text of an SMTP reply, but not from that of an OOB bounce.
  const isComplete = status === null || content?.includes(status)
  return { code, status, diagnostic: replyText(joined(code, isComplete ? null : status, content)) || null }
}

/** As in a DSN, x.0.0 is replaced if the text is more specific. */
const statusOf = (given: string | null, inText: string | null): string | null =>
  given === null || (given.endsWith('.0.0') && inText?.[0] === given[0]) ? inText : given

const joined = (...parts: (string | number | null)[]): string =>
  parts.filter((part) => part !== null).join(' ')

function enhancedCodeOf(response: unknown): string | null {
  const digits = ['class', 'subject', 'detail'].map((name) =>
    numberIn(memberOf(response, 'enhanced_code', name), 0, 999),
  )
  return digits.includes(null) || ![2, 4, 5].includes(digits[0] ?? 0) ? null : digits.join('.')
}

/** The address, without brackets. */
function pathsOf(value: unknown): string[] {
  const address = addressIn(textOf(value))
  return address === null ? [] : [address]
}

/**
 * Where a complaint can contain the return path: the address that it was sent to, its own fields, and the header of
 * the reported message.
 */
function reportedPathsOf(record: unknown): string[] {
  const report = memberOf(record, 'feedback_report')
  const header = headerFieldsOf(stringOf(memberOf(report, 'original_message')))
  const ref = fieldOf(header, 'x-postern-ref')
  return [
    ...pathsOf(memberOf(record, 'recipient')),
    ...pathsOf(memberOf(report, 'original_mail_from')),
    ...pathsOf(fieldOf(header, 'return-path')),
    ...(ref === null ? [] : [`${ref}@`]),
  ]
}

function feedbackTypeOf(value: unknown): string | null {
  const [, type] = /^([\w-]{1,40})/.exec(stringOf(value)) ?? []
  return type?.toLowerCase() ?? null
}

/** The value at a path of names; undefined if there is none. */
function memberOf(value: unknown, ...path: string[]): unknown {
  let at = value
  for (const name of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined
    at = (at as Record<string, unknown>)[name]
  }
  return at
}

const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const maxCharacters = 2000

const textOf = (value: unknown): string | null =>
  stringOf(value)
    .slice(0, maxCharacters)
    .replace(/\p{Cc}+/gu, ' ')
    .trim() || null

/** Objects and lists are left out: they can be nested so deeply that encoding them fails. */
const scalarOf = (value: unknown): string | number | null =>
  typeof value === 'string' || typeof value === 'number' ? value : null

const numberIn = (value: unknown, min: number, max: number): number | null =>
  typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max ? value : null
