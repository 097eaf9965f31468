import { addressIn, fieldOf, type Report } from './multipart-report.ts'

/** A complaint (RFC 5965): a recipient, or the recipient's provider, reports the message as unwanted. */
export interface FeedbackReport {
  /** `abuse`, `fraud`, `virus`, `not-spam`, `other`, …; in lower case. */
  feedbackType: string
  /** The envelope sender: Postern's return path with its token. */
  originalMailFrom: string | null
  /** Often omitted to protect the complainant's privacy. */
  originalRcptTo: string[]
  /** The remaining fields of the original header. */
  reportedHeaders: {
    returnPath: string | null
    messageId: string | null
    ref: string | null
    to: string | null
  }
}

const maxRecipients = 100

/** Undefined for a report of another kind. */
export function feedbackReportIn(report: Report): FeedbackReport | undefined {
  const [fields] = report.groupsOf(/^message\/feedback-report$/) ?? []
  if (!fields) return undefined
  const [, feedbackType] = /^([\w-]{1,40})/.exec(fieldOf(fields, 'feedback-type') ?? '') ?? []
  if (feedbackType === undefined) return undefined
  const { original } = report
  return {
    feedbackType: feedbackType.toLowerCase(),
    originalMailFrom: addressIn(fieldOf(fields, 'original-mail-from')),
    originalRcptTo: (fields.get('original-rcpt-to') ?? [])
      .slice(0, maxRecipients)
      .map((value) => addressIn(value))
      .filter((address) => address !== null),
    reportedHeaders: {
      returnPath: addressIn(fieldOf(original, 'return-path')),
      messageId: fieldOf(original, 'message-id'),
      ref: fieldOf(original, 'x-postern-ref'),
      to: fieldOf(original, 'to'),
    },
  }
}
