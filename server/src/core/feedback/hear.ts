import type { DsnRecipient } from '../../mail/dsn.ts'
import type { FeedbackKind } from './feedback.ts'

/** What a report says, in our words. */
export interface Heard {
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
export function hearDelivery(parts: readonly DsnRecipient[], address: string): Heard | undefined {
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

export const hearComplaint = (feedbackType: string): Heard | undefined =>
  complaints.includes(feedbackType)
    ? { kind: 'complained', status: null, diagnostic: feedbackType }
    : undefined
