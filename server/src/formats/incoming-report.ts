import { createHash } from 'node:crypto'
import { type FeedbackReport, feedbackReportIn } from './arf.ts'
import { type Dsn, dsnIn } from './dsn.ts'
import { readReport } from './multipart-report.ts'
import { displayFields } from './trace.ts'

/** A parsed message sent to a return path or a complaint address, from one pass of the parser. */
export interface IncomingReport {
  complaint: FeedbackReport | undefined
  dsn: Dsn | undefined
  /** SHA-256 of the message. */
  digest: Uint8Array
  /** Used to return the report to the original sender. */
  from: string
  subject: string
  hasNul: boolean
}

/** Never rejects. Takes up to 50 ms, so it runs in a worker thread. */
export async function readIncomingReport(raw: Buffer): Promise<IncomingReport> {
  const report = await readReport(raw)
  const complaint = report && feedbackReportIn(report)
  return {
    complaint,
    dsn: complaint ? undefined : report && dsnIn(report),
    digest: createHash('sha256').update(raw).digest(),
    ...displayFields(raw),
    hasNul: raw.includes(0),
  }
}
