/**
 * A search takes at most this share of the worker's time. While a transaction holds an old snapshot, PostgreSQL keeps
 * deleted rows in the indexes, and the searches of the queue read them all.
 */
const share = 0.05
/** The longest interval that results from the share. A slow search may also be the result of a short disturbance. */
const longestIntervalMs = 10_000

/** A search of the queue that is repeated at an interval, or less often if it takes long. */
export class RecurringSearch<T> {
  readonly #everyMs: number
  readonly #search: () => Promise<T>
  readonly #now: () => number
  #startedAt = Number.NEGATIVE_INFINITY
  /** The duration of the last search that succeeded. */
  #tookMs = 0

  constructor(everyMs: number, search: () => Promise<T>, now = () => performance.now()) {
    this.#everyMs = everyMs
    this.#search = search
    this.#now = now
  }

  isDue(everyMs = this.#everyMs): boolean {
    const affordableMs = Math.min(longestIntervalMs, this.#tookMs / share)
    return this.#now() - this.#startedAt >= Math.max(everyMs, affordableMs)
  }

  async run(): Promise<T> {
    this.#startedAt = this.#now()
    const found = await this.#search()
    this.#tookMs = this.#now() - this.#startedAt
    return found
  }
}
