/**
 * A semaphore for password hashing in this process. One scrypt hash takes 32 MiB of memory and about 0.1 s on a libuv
 * thread, which is also needed for DNS lookups and file access. Unauthenticated requests can trigger hashing.
 *
 * At most two hashes run at a time (on half of Node.js's four threads), and up to 60 more wait, for about three seconds.
 * Each network can use only one slot, so that no network occupies both, and can have up to 16 waiting requests. Further
 * requests get `rate_limited` with Retry-After.
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
