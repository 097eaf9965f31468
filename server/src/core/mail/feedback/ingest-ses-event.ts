import { readSesEvent } from '../../../formats/ses-event.ts'
import { metrics } from '../../../platform/telemetry/metrics.ts'
import { classifySesEvent } from './classify.ts'
import { applyFeedback } from './feedback.ts'
import { digestOf, type FeedbackDeps } from './ingest-report.ts'
import { decodeReturnPath } from './return-path.ts'
import { traceFeedback } from './trace-feedback.ts'

/**
 * Takes in what SES has published, which whoever calls has found to be authentic. Which mail it is about is told by the
 * tag that the mail was sent with, under a signature of ours: whoever else publishes to the topic names none of our
 * mail. What is not about our mail, or says nothing about what became of it, is passed over. Throws when it has to come
 * again.
 */
export async function ingestSesEvent(deps: FeedbackDeps, text: string): Promise<void> {
  const { cells, log, keys, suppressOn } = deps
  const event = readSesEvent(text)
  const mail = event?.mailTag == null ? undefined : decodeReturnPath(keys, `${event.mailTag}@`)
  const heard = event && classifySesEvent(event)
  if (!mail || !heard) {
    metrics.reports.add({ kind: 'none', outcome: 'ignored' })
    log.info({ type: event?.type ?? null, is_ours: mail !== undefined }, 'an event of SES was passed over')
    return
  }
  const began = new Date()
  const feedback = { ...mail, ...heard, digest: digestOf(mail, Buffer.from(text)) }
  const { mail: db } = cells.ofShard(mail.shard)
  const outcome = await db.transaction((tx) => applyFeedback(tx, feedback, suppressOn))
  const { messageId: message_id, recipientNo: recipient_no, attempt, kind } = feedback
  metrics.reports.add({ kind, outcome })
  await traceFeedback(db, feedback, { outcome, began })
  const line = { message_id, recipient_no, attempt, kind, outcome }
  if (outcome === 'unknown') log.warn(line, 'an event about mail that nobody knows was passed over')
  else log.debug(line, 'an event was taken in')
}
