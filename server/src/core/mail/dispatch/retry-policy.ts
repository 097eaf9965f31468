import type { Handover } from '../../../providers/transport.ts'
import type { Result } from './attempt-recorder.sql.ts'
import type { Claimed } from './claims.sql.ts'

// Decides how to proceed after an attempt:
//
//   sent                 final for Postern; the MTA delivers the message and reports the result
//   permanent rejection  bounced if it concerns the mailbox (5.1.x, 5.2.x), otherwise failed
//   temporary rejection  deferred: retried after 30 s to 1 h, for 3 days
//   unreachable          retried after 5 s to 1 min; the status changes only after 3 days, because the message is not at fault
//   unknown              never retried: waits for the provider's report

const firstRetrySeconds = 30
const maxRetrySeconds = 3600
const unreachableRetrySeconds = 5
const maxUnreachableRetrySeconds = 60
/**
 * Long enough for the MTA's report to arrive first and prevent the retry if the MTA did accept the message.
 */
const doubtfulRetrySeconds = 60
/** An SES event arrives within seconds. SNS retries an undelivered event for one hour. */
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
      const { reply, isPermanent } = handover
      const isAboutMailbox = isPermanent && /^5\.[12]\./.test(handover.status ?? '')
      if (isPermanent || isTooLate(claimed)) {
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

/** Both timestamps come from the database. */
const isTooLate = ({ first_attempt_at, claimed_at }: Claimed): boolean =>
  claimed_at.getTime() - first_attempt_at.getTime() > triedForMs

const backoff = (firstSeconds: number, attempt: number, most = maxRetrySeconds): number =>
  jittered(Math.min(most, firstSeconds * 2 ** Math.min(attempt - 1, 12)))

/** Adds up to 20% so that messages that failed together are not retried together. */
const jittered = (seconds: number): number => seconds * (1 + Math.random() / 5)
