import type { DsnRecipient } from '../../../formats/dsn.ts'
import type { KumoLogRecord } from '../../../formats/kumo-log-record.ts'
import type { SesEvent } from '../../../formats/ses-event.ts'
import type { FeedbackKind } from './feedback.ts'

/** A report in any format, reduced to its effect. */
export interface ClassifiedFeedback {
  kind: FeedbackKind
  status: string | null
  diagnostic: string | null
}

/** From best to worst. RFC 3464 §2.3.3: `relayed` counts as delivered, because no further report follows. */
const actions: readonly DsnRecipient['action'][] = ['delivered', 'relayed', 'expanded', 'delayed', 'failed']

/**
 * Classifies a delivery report about a message to `address`.
 *
 * Messages are sent with one recipient per transaction, so a report has several parts only if an address
 * expands to several addresses. The message counts as delivered if it reached one of them. Otherwise a list
 * would be suppressed because one of its members has left.
 */
export function classifyDelivery(
  parts: readonly DsnRecipient[],
  address: string,
): ClassifiedFeedback | undefined {
  const named = parts.filter(
    ({ originalRecipient, finalRecipient }) =>
      isSame(originalRecipient, address) || isSame(finalRecipient, address),
  )
  const [best] = (named.length > 0 ? named : parts).toSorted(
    (one, other) => actions.indexOf(one.action) - actions.indexOf(other.action),
  )
  return best && { kind: kindOf(best), status: best.status, diagnostic: best.diagnostic }
}

const isSame = (one: string | null, other: string): boolean => one?.toLowerCase() === other.toLowerCase()

function kindOf({ action, status }: DsnRecipient): FeedbackKind {
  if (action === 'delayed') return 'deferred'
  if (action !== 'failed') return 'delivered'
  // Permanently rejected, or abandoned after temporary failures.
  return status.startsWith('4.') ? 'failed' : 'bounced'
}

// RFC 5965 §7.3, and older types still in use. Excludes `not-spam`, which withdraws a complaint, and
// `auth-failure` (RFC 6591), which concerns DKIM and SPF.
const complaints = ['abuse', 'fraud', 'virus', 'other', 'opt-out', 'opt-out-list', 'miscategorized']

export const classifyComplaint = (feedbackType: string): ClassifiedFeedback | undefined =>
  complaints.includes(feedbackType)
    ? { kind: 'complained', status: null, diagnostic: feedbackType }
    : undefined

/**
 * SES accepted the message but did not send it, because the address is on the account's suppression list or
 * on SES's own list. Another project's mail may be the cause, so the address is not suppressed for this
 * project.
 */
const suppressedBySes = ['OnAccountSuppressionList', 'Suppressed']
const notSent = (subType: string): ClassifiedFeedback => ({
  ...{ kind: 'failed', status: null },
  diagnostic: `SES did not send the message: the address is on an SES suppression list (${subType}).`,
})

/**
 * Classifies an SES event. Returns undefined for types that do not concern delivery (Open, Click,
 * Subscription) and for unknown types.
 */
export function classifySesEvent(event: SesEvent): ClassifiedFeedback | undefined {
  const { status, diagnostic } = event
  const classified = (kind: FeedbackKind): ClassifiedFeedback => ({ kind, status, diagnostic })
  switch (event.type) {
    case 'Send':
      return classified('sent')
    case 'Delivery':
      return classified('delivered')
    case 'DeliveryDelay':
      return classified('deferred')
    case 'Reject':
    case 'Rendering Failure':
      return classified('failed')
    case 'Bounce':
      return classifySesBounce(event)
    case 'Complaint':
      return classifySesComplaint(event)
    default:
      return undefined
  }
}

function classifySesBounce({ bounceType, subType, status, diagnostic }: SesEvent): ClassifiedFeedback {
  if (subType !== null && suppressedBySes.includes(subType)) return notSent(subType)
  const reason = diagnostic ?? subType
  // SES gave up after retries.
  if (bounceType === 'Transient') return { kind: 'failed', status, diagnostic: reason }
  // `Undetermined`: SES does not know the cause, so the address is not treated as invalid.
  return { kind: 'bounced', status: bounceType === 'Permanent' ? status : null, diagnostic: reason }
}

function classifySesComplaint({ subType, feedbackType }: SesEvent): ClassifiedFeedback | undefined {
  if (subType !== null && suppressedBySes.includes(subType)) return notSent(subType)
  // Most complaints do not specify a type.
  return classifyComplaint(feedbackType?.toLowerCase() ?? 'abuse')
}

/**
 * Classifies a KumoMTA log record. Returns undefined for types that report neither a delivery attempt, nor the end of
 * delivery, nor a complaint: Reception, Rejection, Delayed, AdminRebind, XferOut and others. KumoMTA logs `Delayed` when
 * it postpones a message without an attempt.
 */
export function classifyKumoRecord(record: KumoLogRecord): ClassifiedFeedback | undefined {
  const { status, diagnostic } = record
  const classified = (kind: FeedbackKind): ClassifiedFeedback => ({ kind, status, diagnostic })
  if (record.isAboutLogRecord) return undefined
  switch (record.type) {
    case 'Delivery':
      return classified('delivered')
    case 'TransientFailure':
      return classified('deferred')
    case 'Bounce':
    // A bounce that the recipient's server sent later. KumoMTA logs only failures.
    case 'OOB':
      return classified(isTemporary(record) ? 'failed' : 'bounced')
    // KumoMTA or its operator gave up. This says nothing about the address, although the status is 5.x.x.
    case 'Expiration':
    case 'AdminBounce':
      return classified('failed')
    case 'Feedback':
      return classifyComplaint(record.feedbackType ?? '')
    default:
      return undefined
  }
}

const isTemporary = ({ status, code }: KumoLogRecord): boolean =>
  status === null ? Math.floor((code ?? 0) / 100) === 4 : status.startsWith('4.')
