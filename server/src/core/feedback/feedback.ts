import type { Tx } from '../../platform/db/db.ts'
import { purgedAtOnce } from '../../platform/db/purge.ts'
import { type Consequences, publish, takeEarlier } from '../dispatch/results.ts'
import { type RecipientEvent, storable } from '../messages/events.ts'
import { suppressComplained } from '../suppressions/automatic.ts'
import {
  deleteDispatch,
  deleteDoubtful,
  deleteSeen,
  findAddress,
  lock,
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

export type Outcome =
  | 'applied'
  /** The very same report was here before. */
  | 'repeated'
  /** No such message, or one that is so old that it was forgotten. */
  | 'unknown'
  /** True, perhaps, but nothing that changes what the mail has become. */
  | 'overtaken'

/**
 * From which statuses a word leads on; all others it leaves as they are (server/migrations/000008_mail.sql has the whole
 * picture). The worker may not have written down yet that the mail is gone, hence `scheduled` and `queued`.
 */
const underway = ['scheduled', 'queued', 'sent', 'deferred']
const movesFrom: Record<FeedbackKind, readonly string[]> = {
  // Told by a provider that has taken it. Once anybody knows that, it is nothing new.
  sent: ['scheduled', 'queued'],
  delivered: underway,
  // A second delay is told, too.
  deferred: underway,
  // One machine took it, and another, further on, did not.
  bounced: [...underway, 'delivered'],
  failed: underway,
  complained: [...underway, 'delivered'],
}

/**
 * Applies one report, in one transaction, exactly once however often it comes, and in whatever order reports come.
 *
 * Locks in the order in which the worker does: dispatch, recipient, results, and the count of the day last.
 */
export async function applyFeedback(
  tx: Tx,
  feedback: Feedback,
  suppressOn: ReadonlySet<string>,
): Promise<Outcome> {
  if (!(await noteSeen(tx, feedback, feedback.digest))) {
    return (await findAddress(tx, feedback)) === undefined ? 'unknown' : 'repeated'
  }
  const { kind, status } = feedback
  // The last word of any attempt is the mail's: whoever still means to hand it over would send it twice. A delay is no
  // last word, but tells of mail that somebody has.
  const isHandedOver =
    kind === 'deferred' ? await deleteDoubtful(tx, feedback) : await deleteDispatch(tx, feedback)
  if (isHandedOver) await settleAttempt(tx, feedback)
  const before = await lock(tx, feedback)
  if (!before) return 'unknown'
  const isMoved = movesFrom[kind].includes(before.status) && (kind !== 'sent' || isHandedOver)
  if (isMoved) {
    const said = feedback.diagnostic ?? status
    await setStatus(tx, feedback, kind, said === null ? null : storable(said))
  }
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

// An MTA gives up on a report that it cannot deliver after five days or so; nobody brings one again after that.
export const seenDays = 14

export const forgetSeenFeedback = (tx: Tx): Promise<number> => deleteSeen(tx, seenDays, purgedAtOnce)
