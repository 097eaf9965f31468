import type { Result } from './evaluate-records.ts'

/**
 * The states of a domain's verification, who moves them and when it is looked at again:
 *
 *   pending  → verified   a look finds everything that is needed, and no other project holds the name
 *   pending  → failed     not within 14 days. Until then looked at after 1, 2, 4 … minutes, at most every 6 hours
 *   verified → failed     something was missing for 3 days. Looked at daily, and hourly while something is missing or
 *                         a new DKIM key waits for its record
 *   verified → failed     DNS gave no answer for 14 days, at every check. The owner is warned after 3 and after 10 days
 *   failed   → verified   as from pending. Looked at daily until 30 days have gone by, then only when asked
 *   any      → pending    a domain edit
 *
 * Otherwise a look that got no answer moves nothing; a provider that gives none never does.
 */
export interface VerificationState {
  status: 'pending' | 'verified' | 'failed'
  /** Since when something has been missing; null while nothing is. */
  failingForMs: number | null
  checksFailed: number
  /** Since when DNS has given no answer; null while it does. */
  unansweredForMs: number | null
  /** A new DKIM key beside the one in use. */
  isKeyWaiting: boolean
}

export interface Next {
  status: VerificationState['status']
  /** Null: not by itself. */
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
/** The last one is no warning any more. */
const warnings = [3, 10, unansweredDays] as const
export type WarningDays = (typeof warnings)[number]
/** So that a thousand domains of one day are not all looked at in one minute of every day after. */
const spread = 0.1

export function nextStep(
  { status, failingForMs, checksFailed, unansweredForMs, isKeyWaiting }: VerificationState,
  result: Result,
): Next {
  if (result === 'complete') {
    return { status: 'verified', delaySeconds: spreadOut(isKeyWaiting ? hour : day) }
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
    // Who got no answer has not given up.
    delaySeconds: isGivenUp && result === 'incomplete' ? null : spreadOut(day),
  }
}

/** The warning that a verified domain is due for, as a number of days; the last one says that it is verified no more. */
export function warningDue(unansweredForMs: number | null, warnedDays: number): WarningDays | undefined {
  const days = (unansweredForMs ?? 0) / dayMs
  return warnings.findLast((after) => days >= after && after > warnedDays)
}

const spreadOut = (seconds: number): number => Math.round(seconds * (1 + spread * Math.random()))
