// Applies delivery reports and complaints to the recipients of messages.

import type { Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { Counter } from '../../../platform/telemetry/metrics.ts'
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

const kinds = ['sent', 'delivered', 'deferred', 'bounced', 'failed', 'complained'] as const
export type FeedbackKind = (typeof kinds)[number]

export const reportCount = new Counter('postern_reports_total', 'Delivery reports, by kind and outcome.', {
  kind: [...kinds, 'none'] as const,
  outcome: [
    ...['applied', 'repeated', 'unknown', 'overtaken', 'ignored', 'refused'],
    ...['coalesced', 'limited', 'expired'],
  ] as const,
})

/** A report about a message that was sent to a provider. */
export interface Feedback extends RecipientKey {
  /** The attempt that sent the message. */
  attempt: number
  kind: FeedbackKind
  /** RFC 3463 code, such as 5.1.1. */
  status: string | null
  /** The remote system's reply or text, unchanged. */
  diagnostic: string | null
  /** SHA-256 of the report as received, for deduplication. */
  digest: Buffer
}

export type FeedbackResult =
  | 'applied'
  /** An identical report has already been applied. */
  | 'repeated'
  /** The message does not exist or has been purged. */
  | 'unknown'
  /** The recipient has already advanced past the reported status. */
  | 'overtaken'
  /** Another delay report within `delayHours` of the previous one. */
  | 'coalesced'
  /** The recipient has reached `maxReports`. */
  | 'limited'
  /** The last status change is so old that the return path is no longer trusted. */
  | 'expired'

/**
 * The statuses from which each kind of report causes a transition; reports do not change other statuses (the
 * state machine is in server/migrations/000003_mail.sql). `scheduled` and `queued` are included because the
 * worker may not have recorded `sent` yet.
 */
const inProgress = ['scheduled', 'queued', 'sent', 'deferred']
const transitionsFrom: Record<FeedbackKind, readonly string[]> = {
  // Reported by a provider that accepted the message. Has no effect after `sent` is recorded.
  sent: ['scheduled', 'queued'],
  delivered: inProgress,
  // Includes repeated delays, but not within `delayHours`.
  deferred: inProgress,
  // One server accepted the message and a later one rejected it.
  bounced: [...inProgress, 'delivered'],
  failed: inProgress,
  complained: [...inProgress, 'delivered'],
}

/**
 * Every recipient of a message knows its return path and can send any number of reports to it. The effect of
 * reports about one recipient is therefore limited. The limits are checked while the recipient is locked. A
 * report that exceeds a limit writes no row and is only counted in `postern_reports_total`.
 *
 * - Delay reports cause one event per `delayHours`. MTAs usually keep mail for five days, which results in at
 *   most 20 delay events.
 * - `maxReports` is twice that number. A message usually has one to five reports. It has more if the address
 *   is a list and each member's MTA sends reports.
 * - After `reportDays` without a change, any MTA has given up on the message (after five days) and on its
 *   report (after five more). A complaint is accepted for as long as the recipient is stored, because people
 *   may read mail much later.
 */
const delayHours = 6
export const maxReports = 40
const reportDays = 14

type Refused = Extract<FeedbackResult, 'repeated' | 'coalesced' | 'limited' | 'expired'>

/**
 * `isQueued`: if the outcome is unknown, a delay proves that an MTA has the message, so the report is
 * applied.
 */
function refusalOf(kind: FeedbackKind, before: RecipientRow, isQueued: boolean): Refused | undefined {
  if (before.is_repeated) return 'repeated'
  if (before.reports >= maxReports) return 'limited'
  if (before.is_expired && !isQueued && kind !== 'complained') return 'expired'
  return isCoalesced(kind, before) && !isQueued ? 'coalesced' : undefined
}

const isCoalesced = (kind: FeedbackKind, { status, is_recent }: RecipientRow): boolean =>
  kind === 'deferred' && status === 'deferred' && is_recent

/**
 * Applies one report in one transaction, exactly once, regardless of duplicates and the order of reports.
 *
 * Locks are taken in the same order as in the worker: dispatch, recipient, results, and the daily counter
 * last.
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
    // Applies even if the complaint does not change the status.
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
 * A final report about any attempt is final for the message: another attempt would send the message twice. A
 * delay is not final but proves that an MTA has the message.
 */
async function endDispatch(tx: Tx, feedback: Feedback): Promise<boolean> {
  const isHandedOver =
    feedback.kind === 'deferred' ? await deleteUncertain(tx, feedback) : await deleteDispatch(tx, feedback)
  if (isHandedOver) await resolveAttempt(tx, feedback)
  return isHandedOver
}

interface Changes {
  /** The worker has not recorded `sent` yet and cannot do so later, because the dispatch row is deleted. */
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

// No MTA retries a report for longer than this.
export const seenDays = reportDays

export const purgeFeedbackSeen = (tx: Tx): Promise<number> => deleteSeen(tx, seenDays, purgedAtOnce)
