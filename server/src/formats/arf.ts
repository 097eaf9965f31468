import { addressIn, fieldOf, type Report } from './multipart-report.ts'

/** A complaint (RFC 5965): a recipient, or their provider on their behalf, does not want the mail. */
export interface FeedbackReport {
  /** `abuse`, `fraud`, `virus`, `not-spam`, `other`, …; in lower case. */
  feedbackType: string
  /** What the mail was sent from: the return path, and so the token in it. */
  originalMailFrom: string | null
  /** Often left out, to protect the one who complains. */
  originalRcptTo: string[]
  /** What is left of the header of the mail. */
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
