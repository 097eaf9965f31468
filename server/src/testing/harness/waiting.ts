import { setTimeout as sleep } from 'node:timers/promises'

/**
 * How tests wait. Nothing in the test suite asserts how long something takes (scripts/check-clock.ts), so there is one
 * limit for every wait, and it is long: a busy machine is not a defect. Speed is measured by `npm run bench:*` and by the
 * full forms of `npm run prove:*`.
 *
 * Longer than the longest wait that the service itself may have before it tries again: a hand-over that stalls takes 20 s,
 * and what may have been sent is tried again up to 72 s later.
 */
export const patienceMs = 180_000

type Awaitable<T> = T | Promise<T>

/**
 * Polls until `condition` returns a value other than `false`, `null` or `undefined`, and returns that value. Throws when
 * that has not happened within the patience of all tests. `what` completes the sentence "Timed out waiting until …".
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
