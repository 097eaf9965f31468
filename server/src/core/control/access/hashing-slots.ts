/**
 * A semaphore for password hashing in this process. One hash (scrypt) takes 32 MiB and about 0.1 s of a thread that DNS
 * lookups and file access use as well, and unauthenticated requests cause it.
 *
 * Two hashes run at once, half of Node.js's four threads, and 60 wait: about three seconds. Each network has one slot, so
 * that no network takes them all, and a queue of 16. Further requests get `rate_limited` with Retry-After.
 */
import { networkOf } from '../../../platform/http/rate-limit.ts'
import { KeyedSemaphore } from '../../../platform/scheduling/keyed-semaphore.ts'

export class HashingSlots {
  readonly #networks: KeyedSemaphore<string>
  readonly #all: KeyedSemaphore<'all'>

  constructor({ atOnce = 2, waitingAtMost = 60, ofNetwork = { atOnce: 1, waitingAtMost: 16 } } = {}) {
    this.#all = new KeyedSemaphore({ atOnce, waitingAtMost })
    this.#networks = new KeyedSemaphore(ofNetwork)
  }

  run<T>(address: string, work: () => Promise<T>): Promise<T> {
    return this.#networks.run(networkOf(address), () => this.#all.run('all', work))
  }
}
