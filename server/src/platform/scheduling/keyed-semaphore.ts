import { PosternError } from '../errors.ts'

interface Place {
  running: number
  waiting: (() => void)[]
}

/**
 * A share of something that is scarce, for each key: so many pieces of work at once, and so many more that wait in their
 * order. A key that has more is refused with `rate_limited`. A semaphore per key.
 */
export class KeyedSemaphore<Key> {
  readonly #atOnce: number
  readonly #waitingAtMost: number
  readonly #places = new Map<Key, Place>()

  constructor({ atOnce, waitingAtMost }: { atOnce: number; waitingAtMost: number }) {
    this.#atOnce = atOnce
    this.#waitingAtMost = waitingAtMost
  }

  async run<T>(key: Key, work: () => Promise<T>): Promise<T> {
    const place = this.#places.get(key) ?? { running: 0, waiting: [] }
    this.#places.set(key, place)
    if (place.running < this.#atOnce) place.running++
    else await this.#wait(place)
    try {
      return await work()
    } finally {
      const next = place.waiting.shift()
      // The share goes on to the next one, so `running` stays as it is.
      if (next) next()
      else if (--place.running === 0) this.#places.delete(key)
    }
  }

  #wait({ waiting }: Place): Promise<void> {
    if (waiting.length >= this.#waitingAtMost) {
      throw new PosternError(
        'rate_limited',
        `Too many requests at once: ${this.#atOnce} are in progress and ${waiting.length} are waiting. Send fewer at a time.`,
        { retryAfterSeconds: 1 },
      )
    }
    return new Promise((resolve) => waiting.push(resolve))
  }
}
