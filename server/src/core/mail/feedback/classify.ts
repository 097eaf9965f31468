import type { DsnRecipient } from '../../../formats/dsn.ts'
import type { SesEvent } from '../../../formats/ses-event.ts'
import type { FeedbackKind } from './feedback.ts'

/** A report of any format, reduced to its effect. */
export interface ClassifiedFeedback {
  kind: FeedbackKind
  status: string | null
  diagnostic: string | null
}

/** The best comes first. RFC 3464 §2.3.3: `relayed` counts as delivered, because no further report follows. */
const actions: readonly DsnRecipient['action'][] = ['delivered', 'relayed', 'expanded', 'delayed', 'failed']

/**
 * Classifies a delivery report about mail to `address`.
 *
 * Mail has one recipient per transaction, so a report has several parts only when an address expands to several. The mail is
 * delivered when it has reached one of them: otherwise a list would be suppressed because one of its members has left.
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
  // Permanently refused, or given up after temporary failures.
  return status.startsWith('4.') ? 'failed' : 'bounced'
}

// RFC 5965 §7.3, and older types still in use. Not `not-spam`, which withdraws a complaint, and not `auth-failure`
// (RFC 6591), which is about DKIM and SPF.
const complaints = ['abuse', 'fraud', 'virus', 'other', 'opt-out', 'opt-out-list', 'miscategorized']

export const classifyComplaint = (feedbackType: string): ClassifiedFeedback | undefined =>
  complaints.includes(feedbackType)
    ? { kind: 'complained', status: null, diagnostic: feedbackType }
    : undefined

/**
 * SES accepted the mail and did not send it: the address is on the suppression list of the account, or of SES itself. Mail
 * of another project may be the cause, so the address is not suppressed for this one.
 */
const suppressedBySes = ['OnAccountSuppressionList', 'Suppressed']
const notSent = (subType: string): ClassifiedFeedback => ({
  ...{ kind: 'failed', status: null },
  diagnostic: `SES did not send the mail: the address is on an SES suppression list (${subType}).`,
})

/** Classifies an SES event. Undefined for types that are not about delivery: Open, Click, Subscription, and future ones. */
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
  // SES gave up after retrying.
  if (bounceType === 'Transient') return { kind: 'failed', status, diagnostic: reason }
  // Undetermined: SES does not know the cause, so the address is not treated as invalid.
  return { kind: 'bounced', status: bounceType === 'Permanent' ? status : null, diagnostic: reason }
}

function classifySesComplaint({ subType, feedbackType }: SesEvent): ClassifiedFeedback | undefined {
  if (subType !== null && suppressedBySes.includes(subType)) return notSent(subType)
  // Few complaints name their type.
  return classifyComplaint(feedbackType?.toLowerCase() ?? 'abuse')
}
