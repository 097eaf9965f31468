import { createHash } from 'node:crypto'
import { type FeedbackReport, feedbackReportIn } from './arf.ts'
import { type Dsn, dsnIn } from './dsn.ts'
import { readReport } from './multipart-report.ts'
import { shownFields } from './trace.ts'

/** Everything that a mail to a return path or to an address for complaints says, from one pass of the parser. */
export interface IncomingReport {
  complaint: FeedbackReport | undefined
  dsn: Dsn | undefined
  /** SHA-256 of the mail. */
  digest: Uint8Array
  /** For the report as it is sent on. */
  from: string
  subject: string
  hasNul: boolean
}

/** Never rejects. Takes up to 50 ms, so it is for a thread. */
export async function readIncomingReport(raw: Buffer): Promise<IncomingReport> {
  const report = await readReport(raw)
  const complaint = report && feedbackReportIn(report)
  return {
    complaint,
    dsn: complaint ? undefined : report && dsnIn(report),
    digest: createHash('sha256').update(raw).digest(),
    ...shownFields(raw),
    hasNul: raw.includes(0),
  }
}
