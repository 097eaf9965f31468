import { setTimeout as sleep } from 'node:timers/promises'

/**
 * How tests wait. The test suite does not assert durations (scripts/check-clock.ts). All waits share one long
 * limit, because a busy machine is not a defect. `npm run bench:*` and the full forms of `npm run prove:*` measure
 * speed.
 *
 * The limit exceeds the service's longest retry delay: a stalled SMTP session times out after 20 s, and a message that
 * may have been sent is retried up to 72 s later.
 */
export const patienceMs = 180_000

type Awaitable<T> = T | Promise<T>

/**
 * Polls until `condition` returns a value other than `false`, `null` or `undefined`, and returns that value. Throws
 * after `patienceMs`. `what` completes the sentence "Timed out waiting until …".
 */
export async function eventually<T>(
  what: string,
  condition: () => Awaitable<T | false | null | undefined>,
  { everyMs = 20 }: { everyMs?: number } = {},
): Promise<T> {
  for (const deadline = performance.now() + patienceMs; ; await sleep(everyMs)) {
    const value = await condition()
    if (value !== false && value !== null && value !== undefined) return value
    if (performance.now() > deadline) throw new Error(`Timed out waiting until ${what}`)
  }
}
