import { createHash } from 'node:crypto'
import type { FeedbackReport } from '../../../formats/arf.ts'
import type { IncomingReport } from '../../../formats/incoming-report.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { type ClassifiedFeedback, classifyComplaint, classifyDelivery } from './classify.ts'
import { digestBytes, reportCount } from './feedback.ts'
import type { FeedbackGroups } from './feedback-groups.ts'
import { decodeReturnPath, type VerpKeys, type VerpToken } from './match-bounce.ts'

export interface FeedbackDeps {
  keys: VerpKeys
  feedback: FeedbackGroups
  log: Logger
}

/**
 * A report as received, and as parsed by an analysis thread. `read` is undefined if parsing took too long.
 */
export interface ReceivedReport {
  raw: Buffer
  read: IncomingReport | undefined
}

/**
 * Ingests mail sent to a return path (`mail` is its decoded token) or to a complaint address. The return
 * path of a forwarded message encodes the original sender, not the message. A report about a forwarded
 * message therefore identifies the message by the envelope id, which is signed in the same way.
 *
 * Mail that is not a report is logged and ignored. Throws if the sender has to retry the report.
 */
export async function ingestReport(
  deps: FeedbackDeps,
  { raw, read }: ReceivedReport,
  mail: VerpToken | undefined,
): Promise<void> {
  const matched = read && (await matchReport(deps, read, mail))
  if (!read || !matched) {
    reportCount.add({ kind: 'none', outcome: 'ignored' })
    deps.log.info({ message_id: mail?.messageId, size: raw.length }, 'mail ignored, not a report')
    return
  }
  const { hasNul, from, subject } = read
  await deps.feedback.apply({
    ...matched.mail,
    ...matched.classified,
    digest: digestOf(matched.mail, read.digest),
    report: { raw, hasNul, from, subject },
  })
}

interface MatchedReport {
  mail: VerpToken
  classified: ClassifiedFeedback
}

/**
 * Returns the message that a report is about, and the classified report. Undefined if the report identifies
 * none of this installation's messages.
 */
async function matchReport(
  deps: FeedbackDeps,
  { complaint, dsn }: IncomingReport,
  mail: VerpToken | undefined,
): Promise<MatchedReport | undefined> {
  if (complaint) {
    const about = mail ?? reportedMail(deps.keys, complaint)
    const classified = classifyComplaint(complaint.feedbackType)
    return about && classified && { mail: about, classified }
  }
  const about = dsn && (mail ?? decodeReturnPath(deps.keys, `${dsn.envid}@`))
  if (!about) return undefined
  // The recipient's address is needed only if the report covers several recipients.
  const address = dsn.recipients.length > 1 ? await deps.feedback.addressOf(about) : undefined
  const classified = classifyDelivery(dsn.recipients, address ?? '')
  return classified && { mail: about, classified }
}

/**
 * The message that a complaint is about, taken from the first field that contains one of this installation's
 * return paths or the local part of one.
 */
function reportedMail(
  keys: VerpKeys,
  { originalMailFrom, reportedHeaders: { returnPath, ref } }: FeedbackReport,
): VerpToken | undefined {
  for (const text of [originalMailFrom, returnPath, ref]) {
    const mail = text === null ? undefined : decodeReturnPath(keys, text.includes('@') ? text : `${text}@`)
    if (mail) return mail
  }
  return undefined
}

/**
 * The digest includes the message, because reports about two recipients can be byte-identical. `report`
 * contains the report's octets or a digest of them. SHA-256, truncated.
 */
export const digestOf = ({ messageId, recipientNo, attempt }: VerpToken, report: Uint8Array): Buffer =>
  createHash('sha256')
    .update(`${messageId}.${recipientNo}.${attempt}\n`)
    .update(report)
    .digest()
    .subarray(0, digestBytes)
