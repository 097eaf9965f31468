// The retry schedule, based on consecutive failures for an endpoint and on attempts for an event. The
// schedule spans about 27.6 hours. An event is abandoned after 28 hours. A failing endpoint is retried every
// ten hours until it is disabled (auto-disable.ts).

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

/** Spreads out retries to receivers that failed together. */
const jitter = 0.1

/** `failures` starts at 1; 0 <= `random` < 1. */
export function retryDelayMs(failures: number, random: number): number {
  const delay = delaysMs[Math.min(Math.max(failures, 1), delaysMs.length) - 1] ?? 0
  return Math.round(delay * (1 - jitter + 2 * jitter * random))
}

export type RetryDelay = typeof retryDelayMs

const maxRetryAfterMs = 24 * hour

/** RFC 9110 §10.2.3: seconds or a date. Undefined if absent or invalid. */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  const text = header?.trim() ?? ''
  // A date contains a letter; Date.parse would also accept "-5" or "1.5".
  const ms = /^\d{1,10}$/.test(text)
    ? Number(text) * second
    : /[a-z]/i.test(text)
      ? Date.parse(text) - nowMs
      : Number.NaN
  return ms > 0 ? Math.min(ms, maxRetryAfterMs) : undefined
}
