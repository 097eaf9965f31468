import type { Result } from './judgement.ts'

/**
 * The states of a domain's verification, who moves them and when it is looked at again:
 *
 *   pending  → verified   a look finds everything that is needed, and no other project holds the name
 *   pending  → failed     not within 14 days. Until then looked at after 1, 2, 4 … minutes, at most every 6 hours
 *   verified → failed     something was missing for 3 days. Looked at daily, and hourly while something is missing or
 *                         a new DKIM key waits for its record
 *   failed   → verified   as from pending. Looked at daily until 30 days have gone by, then only when asked
 *   any      → pending    a domain edit
 *
 * A look that got no answer moves nothing.
 */
export interface Standing {
  status: 'pending' | 'verified' | 'failed'
  /** Since when something has been missing; null while nothing is. */
  failingForMs: number | null
  checksFailed: number
  /** A new DKIM key beside the one in use. */
  isKeyWaiting: boolean
}

export interface Next {
  status: Standing['status']
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
/** So that a thousand domains of one day are not all looked at in one minute of every day after. */
const spread = 0.1

export function nextStep(
  { status, failingForMs, checksFailed, isKeyWaiting }: Standing,
  result: Result,
): Next {
  if (result === 'complete') {
    return { status: 'verified', delaySeconds: spreadOut(isKeyWaiting ? hour : day) }
  }
  const failingDays = (failingForMs ?? 0) / dayMs
  if (status === 'verified') {
    return result === 'incomplete' && failingDays >= graceDays
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

const spreadOut = (seconds: number): number => Math.round(seconds * (1 + spread * Math.random()))
