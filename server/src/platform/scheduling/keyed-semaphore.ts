import { PosternError } from '../errors.ts'

interface KeyState {
  running: number
  waiting: (() => void)[]
}

/**
 * A semaphore per key: up to `atOnce` tasks run at the same time and up to `waitingAtMost` wait in order. Additional tasks
 * for the key fail with `rate_limited`.
 */
export class KeyedSemaphore<Key> {
  readonly #atOnce: number
  readonly #waitingAtMost: number
  readonly #keys = new Map<Key, KeyState>()

  constructor({ atOnce, waitingAtMost }: { atOnce: number; waitingAtMost: number }) {
    this.#atOnce = atOnce
    this.#waitingAtMost = waitingAtMost
  }

  async run<T>(key: Key, work: () => Promise<T>): Promise<T> {
    const state = this.#keys.get(key) ?? { running: 0, waiting: [] }
    this.#keys.set(key, state)
    if (state.running < this.#atOnce) state.running++
    else await this.#wait(state)
    try {
      return await work()
    } finally {
      const next = state.waiting.shift()
      // The next task takes over the slot, so `running` does not change.
      if (next) next()
      else if (--state.running === 0) this.#keys.delete(key)
    }
  }

  #wait({ waiting }: KeyState): Promise<void> {
    if (waiting.length >= this.#waitingAtMost) {
      throw new PosternError(
        'rate_limited',
        `Too many concurrent requests: ${this.#atOnce} are in progress and ${waiting.length} are waiting. Send fewer at the same time.`,
        { retryAfterSeconds: 1 },
      )
    }
    return new Promise((resolve) => waiting.push(resolve))
  }
}
