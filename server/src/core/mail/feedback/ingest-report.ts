import { createHash } from 'node:crypto'
import type { FeedbackReport } from '../../../formats/arf.ts'
import type { IncomingReport } from '../../../formats/incoming-report.ts'
import type { Cells } from '../../../platform/db/cells.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import type { ByteLimits } from '../../control/caps/caps.ts'
import { type ClassifiedFeedback, classifyComplaint, classifyDelivery } from './classify.ts'
import { findAddress } from './feedback.sql.ts'
import { applyFeedback, reportCount } from './feedback.ts'
import { decodeReturnPath, type VerpKeys, type VerpToken } from './match-bounce.ts'
import { returnBounce } from './return-bounce.ts'
import { traceFeedback } from './trace-feedback.ts'

/** Dependencies for reports that arrive by mail. */
export interface ReportDeps extends FeedbackDeps {
  /** Host name of the return-path MX. */
  name: string
  byteLimits: ByteLimits
}

export interface FeedbackDeps {
  /** The return path identifies the message's cell. */
  cells: Pick<Cells, 'ofShard'>
  keys: VerpKeys
  suppressOn: ReadonlySet<string>
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
  deps: ReportDeps,
  { raw, read }: ReceivedReport,
  mail: VerpToken | undefined,
): Promise<void> {
  const { cells, log, suppressOn } = deps
  const matched = read && (await matchReport(deps, read, mail))
  if (!read || !matched) {
    reportCount.add({ kind: 'none', outcome: 'ignored' })
    log.info({ message_id: mail?.messageId, size: raw.length }, 'mail ignored, not a report')
    return
  }
  const began = new Date()
  const feedback = { ...matched.mail, ...matched.classified, digest: digestOf(matched.mail, read.digest) }
  const isFailure = feedback.kind === 'bounced' || feedback.kind === 'failed'
  const db = cells.ofShard(feedback.shard).mail
  const { outcome, isReturned } = await db.transaction(async (tx) => {
    const outcome = await applyFeedback(tx, feedback, suppressOn)
    const isReturned =
      outcome === 'applied' && isFailure && (await returnBounce(tx, feedback, { raw, ...read }, deps))
    return { outcome, isReturned }
  })
  const { messageId: message_id, recipientNo: recipient_no, attempt, kind } = feedback
  reportCount.add({ kind, outcome })
  await traceFeedback(db, feedback, { outcome, began })
  const line = { message_id, recipient_no, attempt, kind, outcome, ...(isReturned && { is_returned: true }) }
  if (outcome === 'unknown') log.warn(line, 'report ignored, unknown message')
  else log.debug(line, 'report processed')
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
  const { mail: db } = deps.cells.ofShard(about.shard)
  const address = dsn.recipients.length > 1 ? await db.read((tx) => findAddress(tx, about)) : undefined
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
 * contains the report's octets or a digest of them.
 */
export const digestOf = ({ messageId, recipientNo, attempt }: VerpToken, report: Uint8Array): Buffer =>
  createHash('sha256').update(`${messageId}.${recipientNo}.${attempt}\n`).update(report).digest()
