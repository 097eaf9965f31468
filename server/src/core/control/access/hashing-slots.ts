import { networkOf } from '../../../platform/http/rate-limit.ts'
import { KeyedSemaphore } from '../../../platform/scheduling/keyed-semaphore.ts'

/**
 * A semaphore for work that hashes passwords, in this process. A hash (scrypt) takes 32 MiB and about a tenth of a second of a
 * thread that look-ups in the DNS and files use as well, and strangers cause it.
 *
 * Two run at once, half of the four threads that Node.js has, and 60 wait: about three seconds. A network has one of
 * these places, so that no network fills them, and 16 more that wait before they take it. What does not fit gets
 * `rate_limited` with Retry-After.
 */
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
