import { readSesEvent } from '../../../formats/ses-event.ts'
import { classifySesEvent } from './classify.ts'
import { applyFeedback, reportCount } from './feedback.ts'
import { digestOf, type FeedbackDeps } from './ingest-report.ts'
import { decodeReturnPath } from './match-bounce.ts'
import { traceFeedback } from './trace-feedback.ts'

/**
 * Ingests an event published by SES; the caller has verified the signature of the SNS message. A signed tag,
 * set when the message was sent, identifies the message, so another publisher to the topic cannot refer to
 * this installation's mail. Events about other mail, and events that do not concern delivery, are ignored.
 * Throws if SNS has to retry the event.
 */
export async function ingestSesEvent(deps: FeedbackDeps, text: string): Promise<void> {
  const { cells, log, keys, suppressOn } = deps
  const event = readSesEvent(text)
  const mail = event?.mailTag == null ? undefined : decodeReturnPath(keys, `${event.mailTag}@`)
  const classified = event && classifySesEvent(event)
  if (!mail || !classified) {
    reportCount.add({ kind: 'none', outcome: 'ignored' })
    log.info({ type: event?.type ?? null, is_ours: mail !== undefined }, 'SES event ignored')
    return
  }
  const began = new Date()
  const feedback = { ...mail, ...classified, digest: digestOf(mail, Buffer.from(text)) }
  const { mail: db } = cells.ofShard(mail.shard)
  const outcome = await db.transaction((tx) => applyFeedback(tx, feedback, suppressOn))
  const { messageId: message_id, recipientNo: recipient_no, attempt, kind } = feedback
  reportCount.add({ kind, outcome })
  await traceFeedback(db, feedback, { outcome, began })
  const line = { message_id, recipient_no, attempt, kind, outcome }
  if (outcome === 'unknown') log.warn(line, 'SES event ignored, unknown message')
  else log.debug(line, 'SES event processed')
}
