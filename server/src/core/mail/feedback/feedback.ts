// Applies delivery reports and complaints to the recipients of messages.

import type { Tx } from '../../../platform/db/db.ts'
import { Counter } from '../../../platform/telemetry/metrics.ts'
import { type Consequences, consequencesOf, publish } from '../dispatch/results.ts'
import { type RecipientEvent, storable } from '../messages/events.ts'
import { type Bounce, suppressComplained } from '../suppressions/automatic.ts'
import {
  deleteDispatch,
  deleteUncertain,
  lockDispatch,
  lockRecipients,
  type RecipientKey,
  type RecipientRow,
  resolveAttempt,
  writeReports,
} from './feedback.sql.ts'
import { type ReturnableReport, type ReturnOptions, returnBounces } from './return-bounce.ts'

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
  /** Identifies the report as received, for deduplication: see `digestOf`. */
  digest: Buffer
  /** The report itself, if it arrived by mail. It is returned to the original sender if the message was forwarded. */
  report?: ReturnableReport
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
 * The maximum time that a group of reports waits for one lock. A group that fails is split, so only the report about the
 * locked recipient waits for longer.
 */
const groupLockTimeout = '1s'

/** Length of a digest. A recipient's row contains one for each report. */
export const digestBytes = 16

/**
 * `isQueued`: if the outcome is unknown, a delay proves that an MTA has the message, so the report is
 * applied.
 */
function refusalOf({ kind, digest }: Feedback, before: RecipientRow, isQueued: boolean): Refused | undefined {
  if (isRepeated(before, digest)) return 'repeated'
  // A complaint is never dropped. It is final, so there is at most one more.
  if (before.report_digests.length >= maxReports * digestBytes && kind !== 'complained') return 'limited'
  if (before.is_expired && !isQueued && kind !== 'complained') return 'expired'
  return isCoalesced(kind, before) && !isQueued ? 'coalesced' : undefined
}

function isRepeated({ report_digests: digests }: RecipientRow, digest: Buffer): boolean {
  for (let at = 0; at < digests.length; at += digestBytes) {
    if (digests.subarray(at, at + digestBytes).equals(digest)) return true
  }
  return false
}

const isCoalesced = (kind: FeedbackKind, { status, is_recent }: RecipientRow): boolean =>
  kind === 'deferred' && status === 'deferred' && is_recent

export interface FeedbackRules extends ReturnOptions {
  /** Enhanced status codes after which an address is suppressed. */
  suppressOn: ReadonlySet<string>
}

/**
 * Applies reports in one transaction, each exactly once, regardless of duplicates and the order of reports.
 * Returns their results in the same order.
 *
 * Locks are taken in the same order as in the worker: dispatch, recipients, results, and the daily counters last. In
 * each table, rows are locked by key.
 */
export async function applyFeedback(
  tx: Tx,
  all: readonly Feedback[],
  rules: FeedbackRules,
): Promise<FeedbackResult[]> {
  const results: FeedbackResult[] = []
  const consequences: Consequences = { events: [], counts: [] }
  // The effect of a report depends on the earlier reports about the same recipient.
  for (const round of roundsOf(all)) {
    const applied = await applyRound(
      tx,
      round.map(({ feedback }) => feedback),
      rules,
    )
    for (const [position, { index }] of round.entries())
      results[index] = applied.results[position] as FeedbackResult
    consequences.events.push(...applied.events)
    consequences.counts.push(...applied.counts)
  }
  await publish(tx, consequences, rules.suppressOn)
  return results
}

interface Indexed {
  feedback: Feedback
  index: number
}

/** Each round contains at most one report about a recipient, and is sorted by key. */
function roundsOf(all: readonly Feedback[]): Indexed[][] {
  const rounds: Indexed[][] = []
  const counts = new Map<string, number>()
  for (const [index, feedback] of all.entries()) {
    const key = keyOf(feedback)
    const count = counts.get(key) ?? 0
    counts.set(key, count + 1)
    const round = rounds[count] ?? []
    round.push({ feedback, index })
    rounds[count] = round
  }
  return rounds.map((round) => round.sort((one, other) => compareKeys(one.feedback, other.feedback)))
}

const compareKeys = (one: RecipientKey, other: RecipientKey): number =>
  one.shard - other.shard ||
  Number(one.messageId > other.messageId) - Number(one.messageId < other.messageId) ||
  one.recipientNo - other.recipientNo

const keyOf = ({ messageId, recipientNo }: RecipientKey): string => `${messageId} ${recipientNo}`

async function applyRound(
  tx: Tx,
  round: readonly Feedback[],
  rules: FeedbackRules,
): Promise<Consequences & { results: FeedbackResult[] }> {
  const queued = await lockDispatch(tx, round, round.length > 1 ? groupLockTimeout : null)
  const rows = await lockRecipients(tx, round, { delayHours, reportDays })
  const results: FeedbackResult[] = []
  const accepted: Accepted[] = []
  const complaints: Complaint[] = []
  for (const [index, feedback] of round.entries()) {
    const before = rows[index]
    const refusal = before ? refusalOf(feedback, before, queued.has(index)) : 'unknown'
    if (!before || refusal) {
      results.push(refusal ?? 'unknown')
      continue
    }
    const isHandedOver = queued.has(index) && (await endDispatch(tx, feedback))
    const hasChanged = changesStatus(feedback, before, isHandedOver)
    results.push(hasChanged ? 'applied' : 'overtaken')
    if (hasChanged || isHandedOver) accepted.push({ feedback, before, isHandedOver, hasChanged })
    if (feedback.kind === 'complained') complaints.push(complaintOf(feedback, before))
  }
  // Also if a complaint does not change the status.
  await suppressComplained(tx, complaints)
  return { results, ...(await write(tx, accepted, rules)) }
}

type Complaint = Omit<Bounce, 'status'>

const complaintOf = (
  { messageId }: Feedback,
  { project_id: projectId, address: recipient }: RecipientRow,
): Complaint => ({ projectId, messageId, recipient })

/** A report that is written to its recipient. A report without effect is not written, and has no effect again. */
interface Accepted {
  feedback: Feedback
  before: RecipientRow
  /** The worker has not recorded `sent` yet and cannot do so later, because the dispatch row is deleted. */
  isHandedOver: boolean
  hasChanged: boolean
}

const changesStatus = ({ kind }: Feedback, before: RecipientRow, isHandedOver: boolean): boolean =>
  transitionsFrom[kind].includes(before.status) &&
  (kind !== 'sent' || isHandedOver) &&
  !isCoalesced(kind, before)

async function write(tx: Tx, accepted: readonly Accepted[], rules: FeedbackRules): Promise<Consequences> {
  if (accepted.length === 0) return { events: [], counts: [] }
  // A result that the worker has not published yet is published along with the report, so `message.sent` precedes
  // `message.delivered`.
  const earlier = consequencesOf(
    await writeReports(
      tx,
      accepted.map(({ feedback, hasChanged }) => ({
        ...feedback,
        status: hasChanged ? feedback.kind : null,
        reply: replyOf(feedback),
      })),
    ),
  )
  const failed = accepted.filter(
    ({ feedback: { kind }, hasChanged }) => hasChanged && (kind === 'bounced' || kind === 'failed'),
  )
  await returnBounces(
    tx,
    failed.map(({ feedback }) => feedback),
    rules,
  )
  const own = accepted.map(ownConsequences)
  return {
    events: [...earlier.events, ...own.flatMap(({ events }) => events)],
    counts: [...earlier.counts, ...own.flatMap(({ counts }) => counts)],
  }
}

function replyOf({ diagnostic, status }: Feedback): string | null {
  const reply = diagnostic ?? status
  return reply === null ? null : storable(reply)
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

function ownConsequences({
  feedback: { messageId, recipientNo, kind, status, diagnostic },
  before: { project_id: projectId, address },
  isHandedOver,
  hasChanged,
}: Accepted): Consequences {
  const about = { projectId, messageId, recipientNo, recipient: address }
  const events: RecipientEvent[] = []
  if (isHandedOver) events.push({ ...about, type: 'message.sent', status: null, diagnostic: null })
  if (hasChanged && kind !== 'sent') events.push({ ...about, type: `message.${kind}`, status, diagnostic })
  const counts = { projectId, messageId, ...(isHandedOver && { sent: 1 }), ...(hasChanged && { [kind]: 1 }) }
  return { events, counts: isHandedOver || hasChanged ? [counts] : [] }
}
