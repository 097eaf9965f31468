import { createHash } from 'node:crypto'
import type { FeedbackReport } from '../../../formats/arf.ts'
import type { IncomingReport } from '../../../formats/incoming-report.ts'
import type { Cells } from '../../../platform/db/cells.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { metrics } from '../../../platform/telemetry/metrics.ts'
import type { ByteLimits } from '../../control/caps/caps.ts'
import { type ClassifiedFeedback, classifyComplaint, classifyDelivery } from './classify.ts'
import { findAddress } from './feedback.sql.ts'
import { applyFeedback } from './feedback.ts'
import { returnBounce } from './return-bounce.ts'
import { decodeReturnPath, type VerpKeys, type VerpToken } from './return-path.ts'
import { traceFeedback } from './trace-feedback.ts'

/** Where reports come in by mail. */
export interface ReportDeps extends FeedbackDeps {
  /** As which we take them in. */
  name: string
  byteLimits: ByteLimits
}

export interface FeedbackDeps {
  /** Which of them a mail is in, its return path says. */
  cells: Pick<Cells, 'ofShard'>
  keys: VerpKeys
  suppressOn: ReadonlySet<string>
  log: Logger
}

/** A report as it came, and as a thread has parsed it; `read` is undefined where that took too long. */
export interface IngestResult {
  raw: Buffer
  read: IncomingReport | undefined
}

/**
 * Takes in what was sent to a return path (`mail` is what that says), or to an address for complaints. A return path of
 * mail that was sent on says whose it was, and not which; a report names it by the envelope id, under the same signature.
 *
 * What is no report is nobody's concern: it is told in the log, and forgotten. Throws when it has to come again.
 */
export async function ingestReport(
  deps: ReportDeps,
  { raw, read }: IngestResult,
  mail: VerpToken | undefined,
): Promise<void> {
  const { cells, log, suppressOn } = deps
  const told = read && (await understand(deps, read, mail))
  if (!read || !told) {
    metrics.reports.add({ kind: 'none', outcome: 'ignored' })
    log.info({ message_id: mail?.messageId, size: raw.length }, 'mail that is no report was ignored')
    return
  }
  const began = new Date()
  const feedback = { ...told.mail, ...told.heard, digest: digestOf(told.mail, read.digest) }
  const isFailure = feedback.kind === 'bounced' || feedback.kind === 'failed'
  const db = cells.ofShard(feedback.shard).mail
  const { outcome, isPassedOn } = await db.transaction(async (tx) => {
    const outcome = await applyFeedback(tx, feedback, suppressOn)
    const isPassedOn =
      outcome === 'applied' && isFailure && (await returnBounce(tx, feedback, { raw, ...read }, deps))
    return { outcome, isPassedOn }
  })
  const { messageId: message_id, recipientNo: recipient_no, attempt, kind } = feedback
  metrics.reports.add({ kind, outcome })
  await traceFeedback(db, feedback, { outcome, began })
  const line = { message_id, recipient_no, attempt, kind, outcome, ...(isPassedOn && { is_passed_on: true }) }
  if (outcome === 'unknown') log.warn(line, 'a report about mail that nobody knows was ignored')
  else log.debug(line, 'a report was taken in')
}

interface Told {
  mail: VerpToken
  heard: ClassifiedFeedback
}

async function understand(
  deps: FeedbackDeps,
  { complaint, dsn }: IncomingReport,
  mail: VerpToken | undefined,
): Promise<Told | undefined> {
  if (complaint) {
    const about = mail ?? reportedMail(deps.keys, complaint)
    const heard = classifyComplaint(complaint.feedbackType)
    return about && heard && { mail: about, heard }
  }
  const about = dsn && (mail ?? decodeReturnPath(deps.keys, `${dsn.envid}@`))
  if (!about) return undefined
  // Who the mail went to matters only where the report speaks of several.
  const { mail: db } = deps.cells.ofShard(about.shard)
  const address = dsn.recipients.length > 1 ? await db.read((tx) => findAddress(tx, about)) : undefined
  const heard = classifyDelivery(dsn.recipients, address ?? '')
  return heard && { mail: about, heard }
}

/** Whichever of the places that a reporter may leave it in holds a return path of ours, or its local part alone. */
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

/** The mail is part of it: two recipients may be told the same to the byte. `report`: its octets, or a digest of them. */
export const digestOf = ({ messageId, recipientNo, attempt }: VerpToken, report: Uint8Array): Buffer =>
  createHash('sha256').update(`${messageId}.${recipientNo}.${attempt}\n`).update(report).digest()
