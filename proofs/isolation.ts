import { setTimeout as sleep } from 'node:timers/promises'
import { say } from './run.ts'

/**
 * Proves by counting, not by measuring durations, that a slow peer does not delay others: the peer does not respond
 * until the run releases it, and a number of other items must arrive in the meantime. No request to the peer may have
 * timed out by then, so the arrivals are not caused by a timeout.
 *
 *   held → enough requests wait for the peer → `enough` others arrive → released
 *
 * On a slow machine a request can time out earlier. The peer is then released, and the test starts over.
 */
export interface Isolation {
  /** Sets up the preconditions; stops at the deadline. */
  prepare(deadline: number): Promise<void>
  hold(): Promise<void>
  release(): void
  /** The number of requests pending at the peer, and the number that have timed out so far. */
  held(): { pending: number; givenUp: number }
  /** Whether so many requests are pending that arrivals count from now on. */
  isFull(pending: number): Promise<boolean>
  /** The number of other items that have arrived so far. */
  arrived(): Promise<number>
  enough: number
  patienceMs: number
}

const pollEveryMs = 100

/** Returns the faults. */
export async function proveIsolation(isolation: Isolation): Promise<string[]> {
  let tries = 0
  for (const deadline = Date.now() + isolation.patienceMs; Date.now() < deadline; tries++) {
    await isolation.prepare(deadline)
    try {
      await isolation.hold()
      const found = await tryOnce(isolation, deadline)
      if (!found) continue
      say(`${found.arrived} others arrived while ${found.pending} requests waited for a response`)
      return []
    } finally {
      isolation.release()
    }
  }
  return [
    `in ${tries} attempts, ${isolation.enough} others never arrived while a peer withheld its responses`,
  ]
}

/** Returns undefined if a request timed out. */
async function tryOnce(
  { held, isFull, arrived, enough }: Isolation,
  deadline: number,
): Promise<{ pending: number; arrived: number } | undefined> {
  const { givenUp } = held()
  let before = await arrived()
  for (; Date.now() < deadline; await sleep(pollEveryMs)) {
    const count = await arrived()
    const { pending, givenUp: now } = held()
    if (now !== givenUp) return undefined
    if (!(await isFull(pending))) before = count
    else if (count - before >= enough) return { pending, arrived: count - before }
  }
  return undefined
}
