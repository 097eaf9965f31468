import type { Handover } from '../../providers/carrier.ts'
import type { Claimed } from './claim.sql.ts'
import type { Result } from './finish.sql.ts'

/**
 * What follows from how a hand-over ended.
 *
 *   sent                     done here; the rest is the MTA's, which reports
 *   refused for good         bounced where it is about the mailbox (5.1.x, 5.2.x), failed otherwise
 *   refused for now          tried again, from 30 s to 1 h apart, for 3 days
 *   nobody there to take it  tried again shortly: it is no fault of the mail's, and nobody is told
 */
const firstRetrySeconds = 30
const maxRetrySeconds = 3600
const unreachableRetrySeconds = 5
/** If it was taken after all, the MTA's report comes first, and it is not sent again. */
const doubtfulRetrySeconds = 60
const triedForMs = 3 * 24 * 3600_000

export type Judged = Pick<Result, 'host' | 'queueId' | 'outcome' | 'reply' | 'retrySeconds' | 'status'>

export function judge(handover: Handover, { attempt, first_attempt_at }: Claimed, now: Date): Judged {
  const at = { host: handover.host, queueId: null }
  switch (handover.kind) {
    case 'sent':
      return {
        ...at,
        queueId: handover.queueId,
        outcome: 'sent',
        reply: handover.reply,
        retrySeconds: null,
        status: 'sent',
      }
    case 'unreachable':
      return {
        ...at,
        outcome: 'unreachable',
        reply: handover.detail,
        retrySeconds: jittered(handover.mayBeSent ? doubtfulRetrySeconds : unreachableRetrySeconds),
        status: null,
      }
    case 'refused': {
      const { reply } = handover
      if (handover.isLasting) {
        const isAboutMailbox = /^5\.[12]\./.test(handover.status ?? '')
        return {
          ...at,
          outcome: 'refused',
          reply,
          retrySeconds: null,
          status: isAboutMailbox ? 'bounced' : 'failed',
        }
      }
      if (now.getTime() - first_attempt_at.getTime() > triedForMs) {
        return { ...at, outcome: 'refused', reply, retrySeconds: null, status: 'failed' }
      }
      return { ...at, outcome: 'deferred', reply, retrySeconds: backoffSeconds(attempt), status: 'deferred' }
    }
  }
}

const backoffSeconds = (attempt: number): number =>
  jittered(Math.min(maxRetrySeconds, firstRetrySeconds * 2 ** Math.min(attempt - 1, 10)))

/** Up to a fifth more, so that what failed together does not come back together. */
const jittered = (seconds: number): number => seconds * (1 + Math.random() / 5)
