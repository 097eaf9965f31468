import type { Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { type Consequences, publish, takeEarlier } from '../dispatch/results.ts'
import { type RecipientEvent, storable } from '../messages/events.ts'
import { suppressComplained } from '../suppressions/automatic.ts'
import {
  countReport,
  deleteDispatch,
  deleteDoubtful,
  deleteSeen,
  lock,
  lockDispatch,
  noteSeen,
  type RecipientKey,
  type RecipientRow,
  setStatus,
  settleAttempt,
} from './feedback.sql.ts'

export type FeedbackKind = 'sent' | 'delivered' | 'deferred' | 'bounced' | 'failed' | 'complained'

/** What somebody told us of mail that we handed over. */
export interface Feedback extends RecipientKey {
  /** Under which it was handed over. */
  attempt: number
  kind: FeedbackKind
  /** RFC 3463, such as 5.1.1. */
  status: string | null
  /** What a machine said, in its own words. */
  diagnostic: string | null
  /** SHA-256 of the report as it came: the same report again is nothing new. */
  digest: Buffer
}

export type FeedbackResult =
  | 'applied'
  /** The very same report was here before. */
  | 'repeated'
  /** No such message, or one that is so old that it was forgotten. */
  | 'unknown'
  /** True, perhaps, but nothing that changes what the mail has become. */
  | 'overtaken'
  /** One more delay of mail whose delay was reported a short while ago. */
  | 'coalesced'
  /** So many reports about this recipient were taken that no further one is. */
  | 'limited'
  /** Nothing was heard of the mail for so long that its return path is not believed any more. */
  | 'expired'

/**
 * From which statuses a word leads on; all others it leaves as they are (server/migrations/000003_mail.sql has the whole
 * picture). The worker may not have written down yet that the mail is gone, hence `scheduled` and `queued`.
 */
const underway = ['scheduled', 'queued', 'sent', 'deferred']
const movesFrom: Record<FeedbackKind, readonly string[]> = {
  // Told by a provider that has taken it. Once anybody knows that, it is nothing new.
  sent: ['scheduled', 'queued'],
  delivered: underway,
  // A later delay, too, but not within `delayHours`.
  deferred: underway,
  // One machine took it, and another, further on, did not.
  bounced: [...underway, 'delivered'],
  failed: underway,
  complained: [...underway, 'delivered'],
}

/**
 * Whoever receives a mail has its return path, and can send any number of reports there. So what the reports about one
 * recipient can cause is limited, under the recipient's lock. What is beyond a limit leaves no row, only a count in
 * `postern_reports_total`.
 *
 * - A delay is an event once in `delayHours`. MTAs keep mail for five days as a rule: 20 delays at most.
 * - `reportsAtMost`: those 20, and as many again. A mail has one to five; more come where an address stands for a list, of
 *   which each reader's MTA reports.
 * - `reportDays` after the last change an MTA has given up the mail (five days) and its report (five more). A complaint is
 *   taken for as long as the recipient is kept: people complain when they read.
 */
const delayHours = 6
export const reportsAtMost = 40
const reportDays = 14

type Refused = Extract<FeedbackResult, 'repeated' | 'coalesced' | 'limited' | 'expired'>

/** `isQueued`: a delay of mail of which it is not known whether an MTA has it says that one does, and is looked at. */
function refusalOf(kind: FeedbackKind, before: RecipientRow, isQueued: boolean): Refused | undefined {
  if (before.is_repeated) return 'repeated'
  if (before.reports >= reportsAtMost) return 'limited'
  if (before.is_expired && !isQueued && kind !== 'complained') return 'expired'
  return isCoalesced(kind, before) && !isQueued ? 'coalesced' : undefined
}

const isCoalesced = (kind: FeedbackKind, { status, is_recent }: RecipientRow): boolean =>
  kind === 'deferred' && status === 'deferred' && is_recent

/**
 * Applies one report, in one transaction, exactly once however often it comes, and in whatever order reports come.
 *
 * Locks in the order in which the worker does: dispatch, recipient, results, and the count of the day last.
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
  if (!(await noteSeen(tx, before.project_id, digest))) return 'repeated'
  const isHandedOver = isQueued && (await endDispatch(tx, feedback))
  const isMoved =
    movesFrom[kind].includes(before.status) && (kind !== 'sent' || isHandedOver) && !isCoalesced(kind, before)
  if (isMoved) {
    const said = feedback.diagnostic ?? feedback.status
    await setStatus(tx, feedback, kind, said === null ? null : storable(said))
  } else await countReport(tx, feedback)
  const earlier = await takeEarlier(tx, feedback)
  if (kind === 'complained') {
    const { project_id: projectId, address: recipient } = before
    // Also of a recipient whose status a complaint no longer changes.
    await suppressComplained(tx, { projectId, messageId: feedback.messageId, recipient })
  }
  const own = consequencesOf(feedback, before, { isHandedOver, isMoved })
  await publish(
    tx,
    { events: [...earlier.events, ...own.events], counts: [...earlier.counts, ...own.counts] },
    suppressOn,
  )
  return isMoved ? 'applied' : 'overtaken'
}

/**
 * The last word of any attempt is the mail's: whoever still means to hand it over would send it twice. A delay is no last
 * word, but tells of mail that somebody has.
 */
async function endDispatch(tx: Tx, feedback: Feedback): Promise<boolean> {
  const isHandedOver =
    feedback.kind === 'deferred' ? await deleteDoubtful(tx, feedback) : await deleteDispatch(tx, feedback)
  if (isHandedOver) await settleAttempt(tx, feedback)
  return isHandedOver
}

interface Changes {
  /** Nobody had written down yet that it was sent; nobody else will, now that the dispatch row is gone. */
  isHandedOver: boolean
  isMoved: boolean
}

function consequencesOf(
  { messageId, recipientNo, kind, status, diagnostic }: Feedback,
  { project_id: projectId, address }: RecipientRow,
  { isHandedOver, isMoved }: Changes,
): Consequences {
  const about = { projectId, messageId, recipientNo, recipient: address }
  const events: RecipientEvent[] = []
  if (isHandedOver) events.push({ ...about, type: 'message.sent', status: null, diagnostic: null })
  if (isMoved && kind !== 'sent') events.push({ ...about, type: `message.${kind}`, status, diagnostic })
  const counts = { projectId, ...(isHandedOver && { sent: 1 }), ...(isMoved && { [kind]: 1 }) }
  return { events, counts: isHandedOver || isMoved ? [counts] : [] }
}

// No MTA brings a report again after that.
export const seenDays = reportDays

export const purgeFeedbackSeen = (tx: Tx): Promise<number> => deleteSeen(tx, seenDays, purgedAtOnce)
