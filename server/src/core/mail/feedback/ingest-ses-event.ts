import { readSesEvent } from '../../../formats/ses-event.ts'
import { classifySesEvent } from './classify.ts'
import { reportCount } from './feedback.ts'
import { digestOf, type FeedbackDeps } from './ingest-report.ts'
import { decodeReturnPath } from './match-bounce.ts'

/**
 * Ingests an event published by SES; the caller has verified the signature of the SNS message. A signed tag,
 * set when the message was sent, identifies the message, so another publisher to the topic cannot refer to
 * this installation's mail. Events about other mail, and events that do not concern delivery, are ignored.
 * Throws if SNS has to retry the event.
 */
export async function ingestSesEvent(deps: FeedbackDeps, text: string): Promise<void> {
  const { log, keys, feedback } = deps
  const event = readSesEvent(text)
  const mail = event?.mailTag == null ? undefined : decodeReturnPath(keys, `${event.mailTag}@`)
  const classified = event && classifySesEvent(event)
  if (!mail || !classified) {
    reportCount.add({ kind: 'none', outcome: 'ignored' })
    log.info({ type: event?.type ?? null, is_ours: mail !== undefined }, 'SES event ignored')
    return
  }
  await feedback.apply({ ...mail, ...classified, digest: digestOf(mail, Buffer.from(text)) })
}
