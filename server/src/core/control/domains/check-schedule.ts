/**
 * The states of a domain's verification, their transitions, and the time of the next check:
 *
 *   pending  → verified   a check finds every required record, and no other project has verified the name
 *   pending  → failed     after 14 days. Until then checked after 1, 2, 4 … minutes, at most every 6 hours
 *   verified → failed     a record was missing for 3 days. Checked daily, and hourly while a record is missing or a pending
 *                         DKIM key awaits its record
 *   verified → failed     DNS lookups failed at every check for 14 days. The owner is warned after 3 and after 10 days
 *   failed   → verified   as from pending. Checked daily for 30 days, then only on request
 *   any      → pending    a domain edit
 *
 * Apart from that, failed lookups do not change the state, and neither does an unreachable provider.
 */

import type { Result } from './evaluate-records.ts'

export interface VerificationState {
  status: 'pending' | 'verified' | 'failed'
  /** How long a record has been missing, or null if none is missing. */
  failingForMs: number | null
  checksFailed: number
  /** How long DNS lookups have been failing, or null if they succeed. */
  unansweredForMs: number | null
  /** A second DKIM key awaits its record while the active one is in use. */
  isKeyPending: boolean
}

export interface NextStep {
  status: VerificationState['status']
  /** Null if there is no further automatic check. */
  delaySeconds: number | null
}

const hour = 3600
const day = 24 * hour
const dayMs = day * 1000

const firstDelaySeconds = 60
const maxDelaySeconds = 6 * hour
const pendingDays = 14
const graceDays = 3
const watchedDays = 30
const unansweredDays = 14
/**
 * The numbers of days of failed lookups after which a warning is sent. At the last value, the domain loses its
 * verification.
 */
const warnings = [3, 10, unansweredDays] as const
export type WarningDays = (typeof warnings)[number]
/** Jitter, so that domains added together are not always checked in the same minute. */
const spread = 0.1

export function nextStep(
  { status, failingForMs, checksFailed, unansweredForMs, isKeyPending }: VerificationState,
  result: Result,
): NextStep {
  if (result === 'complete') {
    return { status: 'verified', delaySeconds: spreadOut(isKeyPending ? hour : day) }
  }
  const failingDays = (failingForMs ?? 0) / dayMs
  if (status === 'verified') {
    const isUnanswered = (unansweredForMs ?? 0) / dayMs >= unansweredDays
    return isUnanswered || (result === 'incomplete' && failingDays >= graceDays)
      ? { status: 'failed', delaySeconds: spreadOut(day) }
      : { status, delaySeconds: spreadOut(hour) }
  }
  if (status === 'pending' && failingDays < pendingDays) {
    const backoff = Math.min(maxDelaySeconds, firstDelaySeconds * 2 ** Math.min(checksFailed, 16))
    return { status, delaySeconds: spreadOut(backoff) }
  }
  const isGivenUp = failingDays >= watchedDays
  return {
    status: result === 'incomplete' ? 'failed' : status,
    // Checks continue while lookups fail.
    delaySeconds: isGivenUp && result === 'incomplete' ? null : spreadOut(day),
  }
}

/**
 * The threshold, in days, of the warning that is due for a verified domain. The last warning says that the domain is no
 * longer verified.
 */
export function warningDue(unansweredForMs: number | null, warnedDays: number): WarningDays | undefined {
  const days = (unansweredForMs ?? 0) / dayMs
  return warnings.findLast((after) => days >= after && after > warnedDays)
}

const spreadOut = (seconds: number): number => Math.round(seconds * (1 + spread * Math.random()))
