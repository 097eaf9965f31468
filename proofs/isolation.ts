import { setTimeout as sleep } from 'node:timers/promises'
import { say } from './run.ts'

/**
 * Shows by counts, not by times, that a slow peer does not delay others: the peer does not answer until the run releases
 * it, and meanwhile a number of other items must arrive. They arrive while no request to the peer has timed out, so a
 * timeout is not the reason.
 *
 *   held → enough requests wait for the peer → `enough` others arrive → released
 *
 * On a slow machine a request may time out before that. Then the peer is released, and the test starts over.
 */
export interface Isolation {
  /** What has to be there before; given up at the deadline. */
  prepare(deadline: number): Promise<void>
  hold(): Promise<void>
  release(): void
  /** Requests that wait for the peer, and how many were ever given up. */
  held(): { pending: number; givenUp: number }
  /** So much waits for the peer that what arrives from now on counts. */
  isFull(pending: number): Promise<boolean>
  /** How many things of the others have arrived so far. */
  arrived(): Promise<number>
  enough: number
  patienceMs: number
}

const pollEveryMs = 100

/** What is wrong, if anything. */
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
  return [`in ${tries} tries, ${isolation.enough} others never arrived while a peer held back its responses`]
}

/** Undefined when somebody gave up. */
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
