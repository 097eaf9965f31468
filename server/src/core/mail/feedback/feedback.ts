// Applies delivery reports and complaints to the recipients of messages.

import type { Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { type Consequences, publish, takeEarlier } from '../dispatch/results.ts'
import { type RecipientEvent, storable } from '../messages/events.ts'
import { suppressComplained } from '../suppressions/automatic.ts'
import {
  countReport,
  deleteDispatch,
  deleteSeen,
  deleteUncertain,
  insertSeen,
  lock,
  lockDispatch,
  type RecipientKey,
  type RecipientRow,
  resolveAttempt,
  setStatus,
} from './feedback.sql.ts'

export type FeedbackKind = 'sent' | 'delivered' | 'deferred' | 'bounced' | 'failed' | 'complained'

/** A report about mail that was handed over. */
export interface Feedback extends RecipientKey {
  /** The attempt with which it was handed over. */
  attempt: number
  kind: FeedbackKind
  /** RFC 3463, such as 5.1.1. */
  status: string | null
  /** The reply or text of the remote system, unchanged. */
  diagnostic: string | null
  /** SHA-256 of the report as received, for deduplication. */
  digest: Buffer
}

export type FeedbackResult =
  | 'applied'
  /** The identical report was applied before. */
  | 'repeated'
  /** The message does not exist, or has been purged. */
  | 'unknown'
  /** The status of the recipient has moved past what the report says. */
  | 'overtaken'
  /** A further delay within `delayHours` of the last one. */
  | 'coalesced'
  /** The recipient has reached `maxReports`. */
  | 'limited'
  /** The last change of status is so old that its return path is no longer trusted. */
  | 'expired'

/**
 * The statuses from which each kind of report causes a transition; all others stay as they are (the state machine is in
 * server/migrations/000003_mail.sql). The worker may not have recorded the handover yet, hence `scheduled` and `queued`.
 */
const inProgress = ['scheduled', 'queued', 'sent', 'deferred']
const transitionsFrom: Record<FeedbackKind, readonly string[]> = {
  // Reported by a provider that has accepted the mail. Once `sent` is recorded, it adds nothing.
  sent: ['scheduled', 'queued'],
  delivered: inProgress,
  // A later delay as well, but not within `delayHours`.
  deferred: inProgress,
  // One server accepted the mail, and a later one refused it.
  bounced: [...inProgress, 'delivered'],
  failed: inProgress,
  complained: [...inProgress, 'delivered'],
}

/**
 * Every recipient of a mail knows its return path, and can send any number of reports to it. So the effect of the reports
 * about one recipient is limited, under the recipient's lock. A report beyond a limit writes no row, and only counts in
 * `postern_reports_total`.
 *
 * - A delay causes one event per `delayHours`. MTAs usually keep mail for five days: 20 delays at most.
 * - `maxReports`: those 20, and as many again. A mail usually has one to five; more arrive when an address is a list, whose
 *   members' MTAs each send reports.
 * - `reportDays` after the last change an MTA has given up the mail (five days) and its report (five more). A complaint is
 *   accepted for as long as the recipient is kept: people complain when they read.
 */
const delayHours = 6
export const maxReports = 40
const reportDays = 14

type Refused = Extract<FeedbackResult, 'repeated' | 'coalesced' | 'limited' | 'expired'>

/** `isQueued`: a delay of mail whose handover is uncertain proves that an MTA has it, and is applied. */
function refusalOf(kind: FeedbackKind, before: RecipientRow, isQueued: boolean): Refused | undefined {
  if (before.is_repeated) return 'repeated'
  if (before.reports >= maxReports) return 'limited'
  if (before.is_expired && !isQueued && kind !== 'complained') return 'expired'
  return isCoalesced(kind, before) && !isQueued ? 'coalesced' : undefined
}

const isCoalesced = (kind: FeedbackKind, { status, is_recent }: RecipientRow): boolean =>
  kind === 'deferred' && status === 'deferred' && is_recent

/**
 * Applies one report in one transaction: exactly once, however often it arrives, and independent of the order of reports.
 *
 * Locks in the same order as the worker: dispatch, recipient, results, and the daily counter last.
 */
export async function applyFeedback(
  tx: Tx,
  feedback: Feedback,
  suppressOn: ReadonlySet<string>,
): Promise<FeedbackResult> {
  const { kind, digest } = feedback
  const isQueued = await lockDispatch(tx, feedback)
  const before = await lock(tx, feedback, digest, { delayHours, reportDays })
  if (!before) return 'unknown'
  const refusal = refusalOf(kind, before, isQueued)
  if (refusal) return refusal
  if (!(await insertSeen(tx, before.project_id, digest))) return 'repeated'
  const isHandedOver = isQueued && (await endDispatch(tx, feedback))
  const hasChanged =
    transitionsFrom[kind].includes(before.status) &&
    (kind !== 'sent' || isHandedOver) &&
    !isCoalesced(kind, before)
  if (hasChanged) {
    const reply = feedback.diagnostic ?? feedback.status
    await setStatus(tx, feedback, kind, reply === null ? null : storable(reply))
  } else await countReport(tx, feedback)
  const earlier = await takeEarlier(tx, feedback)
  if (kind === 'complained') {
    const { project_id: projectId, address: recipient } = before
    // Also when the complaint does not change the status.
    await suppressComplained(tx, { projectId, messageId: feedback.messageId, recipient })
  }
  const own = consequencesOf(feedback, before, { isHandedOver, hasChanged })
  await publish(
    tx,
    { events: [...earlier.events, ...own.events], counts: [...earlier.counts, ...own.counts] },
    suppressOn,
  )
  return hasChanged ? 'applied' : 'overtaken'
}

/**
 * A final report of any attempt is final for the mail: a further handover would send it twice. A delay is not final, but
 * proves that an MTA has the mail.
 */
async function endDispatch(tx: Tx, feedback: Feedback): Promise<boolean> {
  const isHandedOver =
    feedback.kind === 'deferred' ? await deleteUncertain(tx, feedback) : await deleteDispatch(tx, feedback)
  if (isHandedOver) await resolveAttempt(tx, feedback)
  return isHandedOver
}

interface Changes {
  /** The handover was not recorded yet, and cannot be recorded later because the dispatch row is deleted. */
  isHandedOver: boolean
  hasChanged: boolean
}

function consequencesOf(
  { messageId, recipientNo, kind, status, diagnostic }: Feedback,
  { project_id: projectId, address }: RecipientRow,
  { isHandedOver, hasChanged }: Changes,
): Consequences {
  const about = { projectId, messageId, recipientNo, recipient: address }
  const events: RecipientEvent[] = []
  if (isHandedOver) events.push({ ...about, type: 'message.sent', status: null, diagnostic: null })
  if (hasChanged && kind !== 'sent') events.push({ ...about, type: `message.${kind}`, status, diagnostic })
  const counts = { projectId, ...(isHandedOver && { sent: 1 }), ...(hasChanged && { [kind]: 1 }) }
  return { events, counts: isHandedOver || hasChanged ? [counts] : [] }
}

// No MTA retries a report for longer.
export const seenDays = reportDays

export const purgeFeedbackSeen = (tx: Tx): Promise<number> => deleteSeen(tx, seenDays, purgedAtOnce)
