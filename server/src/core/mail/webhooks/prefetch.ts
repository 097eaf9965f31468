import type { Cursor } from './deliveries.sql.ts'
import type { Leased } from './endpoint-queues.sql.ts'
import type { PendingDeliveries, PendingDelivery } from './pending-deliveries.ts'

/**
 * The number of deliveries that a read returns. It starts with `first` and doubles with each read: a slow
 * endpoint has few deliveries in memory, and a fast one needs few reads.
 */
export const prefetchSizes = { first: 32, most: 256 }

/** A run's next deliveries, which are read before they are sent. */
export class Prefetch {
  readonly #queue: Leased
  readonly #pending: PendingDeliveries
  readonly #onRead: (error?: unknown) => void
  readonly #deliveries: PendingDelivery[] = []
  #cursor: Cursor | undefined
  #size = prefetchSizes.first
  /** Half of the last read. */
  #refillAt = 0
  #isReading = false
  #hasReadAll = false

  /** `onRead` is called after each read, with the error if the read failed. */
  constructor(queue: Leased, pending: PendingDeliveries, onRead: (error?: unknown) => void) {
    this.#queue = queue
    this.#pending = pending
    this.#onRead = onRead
  }

  get isReading(): boolean {
    return this.#isReading
  }

  get isEmpty(): boolean {
    return this.#deliveries.length === 0
  }

  /** No delivery is left to be read or taken. */
  get isExhausted(): boolean {
    return this.#hasReadAll && this.isEmpty
  }

  /** Starts a read if at most half of the last read is left. `isSingle` reads one delivery. */
  fill({ isSingle }: { isSingle: boolean }): void {
    if (this.#isReading || this.#hasReadAll || this.#deliveries.length > this.#refillAt) return
    this.#isReading = true
    const most = this.#pending.reserve(isSingle ? 1 : this.#size)
    this.#refillAt = Math.floor(most / 2)
    if (!isSingle) this.#size = Math.min(prefetchSizes.most, 2 * this.#size)
    void this.#read(most)
  }

  /** Must not be empty. */
  take(): PendingDelivery {
    const delivery = this.#deliveries.shift()
    if (!delivery) throw new Error('no delivery was prefetched')
    this.#pending.release(1)
    return delivery
  }

  /** Reads on, even if the last read returned fewer deliveries than it could. */
  readAgain(): void {
    this.#hasReadAll = false
  }

  close(): void {
    this.#pending.release(this.#deliveries.length)
    this.#deliveries.length = 0
  }

  async #read(most: number): Promise<void> {
    let failure: unknown
    let found: PendingDelivery[] = []
    try {
      found = await this.#pending.next({ ...this.#queue, after: this.#cursor, most })
      const last = found.at(-1)?.due
      if (last) this.#cursor = { due_at: last.due_at, event_id: last.event_id }
      this.#hasReadAll = found.length < most
      this.#deliveries.push(...found)
    } catch (error) {
      failure = error
    }
    this.#pending.release(most - found.length)
    this.#isReading = false
    this.#onRead(failure)
  }
}
