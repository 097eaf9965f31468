import type { Handover } from '../../../providers/transport.ts'
import type { Result } from './attempt-recorder.sql.ts'
import type { Claimed } from './claims.sql.ts'

/**
 * What follows from how a hand-over ended.
 *
 *   sent                     done here; the rest is the MTA's, which reports
 *   refused for good         bounced where it is about the mailbox (5.1.x, 5.2.x), failed otherwise
 *   refused for now          tried again, from 30 s to 1 h apart, for 3 days
 *   nobody there to take it  tried again from 5 s on: it is no fault of the mail's, and nobody is told before 3 days
 *   not known                never tried again; the provider's own word is waited for
 */
const firstRetrySeconds = 30
const maxRetrySeconds = 3600
const unreachableRetrySeconds = 5
const maxUnreachableRetrySeconds = 60
/** If it was taken after all, the MTA's report comes first, and it is not sent again. */
const doubtfulRetrySeconds = 60
/** An event of SES comes within seconds. One that was not taken SNS brings again for an hour, and no longer. */
export const awaitedSeconds = 3600
const triedForMs = 3 * 24 * 3600_000

export type RetryDecision = Pick<Result, 'host' | 'queueId' | 'outcome' | 'reply' | 'retrySeconds' | 'status'>

export function decideRetry(handover: Handover, claimed: Claimed): RetryDecision {
  const { attempt } = claimed
  const at = { host: handover.host, queueId: null }
  switch (handover.kind) {
    case 'sent': {
      const { queueId, reply } = handover
      return { ...at, queueId, outcome: 'sent', reply, retrySeconds: null, status: 'sent' }
    }
    case 'unreachable': {
      const { detail: reply, mayBeSent } = handover
      if (isTooLate(claimed))
        return { ...at, outcome: 'unreachable', reply, retrySeconds: null, status: 'failed' }
      const retrySeconds = mayBeSent
        ? backoff(doubtfulRetrySeconds, attempt)
        : backoff(unreachableRetrySeconds, attempt, maxUnreachableRetrySeconds)
      return { ...at, outcome: 'unreachable', reply, retrySeconds, status: null }
    }
    case 'unknown':
      return { ...at, outcome: 'unknown', reply: handover.detail, retrySeconds: awaitedSeconds, status: null }
    case 'refused': {
      const { reply, isLasting } = handover
      const isAboutMailbox = isLasting && /^5\.[12]\./.test(handover.status ?? '')
      if (isLasting || isTooLate(claimed)) {
        return {
          ...at,
          outcome: 'refused',
          reply,
          retrySeconds: null,
          status: isAboutMailbox ? 'bounced' : 'failed',
        }
      }
      return {
        ...at,
        outcome: 'deferred',
        reply,
        retrySeconds: backoff(firstRetrySeconds, attempt),
        status: 'deferred',
      }
    }
  }
}

/** By the database's clock, which dated both. */
const isTooLate = ({ first_attempt_at, claimed_at }: Claimed): boolean =>
  claimed_at.getTime() - first_attempt_at.getTime() > triedForMs

const backoff = (firstSeconds: number, attempt: number, most = maxRetrySeconds): number =>
  jittered(Math.min(most, firstSeconds * 2 ** Math.min(attempt - 1, 12)))

/** Up to a fifth more, so that what failed together does not come back together. */
const jittered = (seconds: number): number => seconds * (1 + Math.random() / 5)
