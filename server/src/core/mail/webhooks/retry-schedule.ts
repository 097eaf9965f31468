/**
 * When an endpoint is tried again: after so many times in a row that nothing was taken, or an event after so many
 * attempts. About 27.6 hours in all; then an event is given up (28 hours), and an endpoint is tried on, every ten hours,
 * until it is switched off.
 */
const [second, minute, hour] = [1_000, 60_000, 3_600_000]
const delaysMs = [
  5 * second,
  30 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  10 * hour,
] as const

/** Receivers that went down together are not tried together. */
const jitter = 0.1

/** `failures` from 1 on; `random` from 0 to just below 1. */
export function retryDelayMs(failures: number, random: number): number {
  const delay = delaysMs[Math.min(Math.max(failures, 1), delaysMs.length) - 1] ?? 0
  return Math.round(delay * (1 - jitter + 2 * jitter * random))
}

export type RetryDelay = typeof retryDelayMs

const restAtMostMs = 24 * hour

/** RFC 9110 §10.2.3: seconds or a date. Undefined: it says nothing that can be heeded. */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  const text = header?.trim() ?? ''
  // A date has a letter in it; Date.parse would also make something of "-5" or "1.5".
  const ms = /^\d{1,10}$/.test(text)
    ? Number(text) * second
    : /[a-z]/i.test(text)
      ? Date.parse(text) - nowMs
      : Number.NaN
  return ms > 0 ? Math.min(ms, restAtMostMs) : undefined
}
