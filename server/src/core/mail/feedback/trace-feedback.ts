import type { Db } from '../../../platform/db/db.ts'
import { follow, isTracing, readStoredTrace, SpanKind } from '../../../platform/telemetry/tracing.ts'
import { findTrace } from './feedback.sql.ts'
import type { Feedback, FeedbackResult } from './feedback.ts'

/** Adds a span for the feedback to the message's trace after the commit. Errors are ignored. */
export async function traceFeedback(
  db: Db,
  feedback: Feedback,
  { outcome, began }: { outcome: FeedbackResult; began: Date },
): Promise<void> {
  if (!isTracing()) return
  const stored = await db.read((tx) => findTrace(tx, feedback)).catch(() => null)
  follow(readStoredTrace(stored), 'feedback', {
    kind: SpanKind.CONSUMER,
    startTime: began,
    attributes: {
      'postern.message_id': feedback.messageId,
      'postern.recipient_no': feedback.recipientNo,
      'postern.feedback': feedback.kind,
      'postern.outcome': outcome,
      ...(feedback.status !== null && { 'smtp.enhanced_status': feedback.status }),
    },
  })?.end()
}
