import type { DsnRecipient } from '../../../formats/dsn.ts'
import type { SesEvent } from '../../../formats/ses-event.ts'
import type { FeedbackKind } from './feedback.ts'

/** What a report says, in our words. */
export interface ClassifiedFeedback {
  kind: FeedbackKind
  status: string | null
  diagnostic: string | null
}

/** The best comes first. RFC 3464 §2.3.3: `relayed` is to be taken as delivered, as far as anybody will ever know. */
const actions: readonly DsnRecipient['action'][] = ['delivered', 'relayed', 'expanded', 'delayed', 'failed']

/**
 * What a delivery report says of mail to `address`.
 *
 * Mail goes to one recipient at a time, so there are several parts only where an address stands for several. It has
 * reached its address when it has reached one of them: to call a list dead because one of its readers has left would
 * suppress it.
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
  // Refused for good, or given up after refusals that were not.
  return status.startsWith('4.') ? 'failed' : 'bounced'
}

// RFC 5965 §7.3, and what some still send. Not `not-spam`, which takes a complaint back, and not `auth-failure`
// (RFC 6591), which is about DKIM and SPF.
const complaints = ['abuse', 'fraud', 'virus', 'other', 'opt-out', 'opt-out-list', 'miscategorized']

export const classifyComplaint = (feedbackType: string): ClassifiedFeedback | undefined =>
  complaints.includes(feedbackType)
    ? { kind: 'complained', status: null, diagnostic: feedbackType }
    : undefined

/**
 * SES took it and did not send it on: the address is on a list of the account's, or of SES's own. Another project's mail
 * may have put it there, so it says nothing about this one's.
 */
const neverSent = ['OnAccountSuppressionList', 'Suppressed']
const notSent = (subType: string): ClassifiedFeedback => ({
  ...{ kind: 'failed', status: null },
  diagnostic: `SES did not send it: the address has bounced or complained before (${subType}).`,
})

/**
 * What an event of SES says. Undefined for what is not about delivery: Open, Click, Subscription, and whatever SES will
 * think of next.
 */
export function classifySesEvent(event: SesEvent): ClassifiedFeedback | undefined {
  const { status, diagnostic } = event
  const heard = (kind: FeedbackKind): ClassifiedFeedback => ({ kind, status, diagnostic })
  switch (event.type) {
    case 'Send':
      return heard('sent')
    case 'Delivery':
      return heard('delivered')
    case 'DeliveryDelay':
      return heard('deferred')
    case 'Reject':
    case 'Rendering Failure':
      return heard('failed')
    case 'Bounce':
      return hearSesBounce(event)
    case 'Complaint':
      return hearSesComplaint(event)
    default:
      return undefined
  }
}

function hearSesBounce({ bounceType, subType, status, diagnostic }: SesEvent): ClassifiedFeedback {
  if (subType !== null && neverSent.includes(subType)) return notSent(subType)
  const said = diagnostic ?? subType
  // Tried for as long as SES tries, in vain.
  if (bounceType === 'Transient') return { kind: 'failed', status, diagnostic: said }
  // Undetermined: SES could not tell why, so the address is not held to be a bad one.
  return { kind: 'bounced', status: bounceType === 'Permanent' ? status : null, diagnostic: said }
}

function hearSesComplaint({ subType, feedbackType }: SesEvent): ClassifiedFeedback | undefined {
  if (subType !== null && neverSent.includes(subType)) return notSent(subType)
  // Few say what kind it is.
  return classifyComplaint(feedbackType?.toLowerCase() ?? 'abuse')
}
