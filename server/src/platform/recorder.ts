import { PosternError } from './errors.ts'

interface Waiting<Item> {
  item: Item
  /** What is not written down by then need not be any more. By the process's steady clock. */
  until: number
  done: () => void
}

export interface RecorderOptions<Item> {
  /** All of them in one transaction, or none. */
  write(items: readonly Item[]): Promise<void>
  atOnce: number
  /** So long is waited for more before each transaction; 0: to the end of this turn of the event loop. */
  gatherMs?: number
  onError(error: unknown, lost: number): void
}

const retryMs = 200

/**
 * Writes down what was done, many things in one transaction: whatever comes while one is under way goes into the next. A
 * transaction that fails is tried again until each thing's time is over; by then somebody else sees to it.
 */
export class Recorder<Item> {
  readonly #options: RecorderOptions<Item>
  #waiting: Waiting<Item>[] = []
  #running: Promise<void> | undefined
  #isFailing = false

  constructor(options: RecorderOptions<Item>) {
    this.#options = options
  }

  /** How much is not written down yet. */
  get behind(): number {
    return this.#waiting.length
  }

  get isFailing(): boolean {
    return this.#isFailing
  }

  /** Resolves when it is written down, or given up. */
  record(item: Item, until: number): Promise<void> {
    return new Promise((done) => {
      this.#waiting.push({ item, until, done })
      this.#running ??= this.#run().finally(() => {
        this.#running = undefined
      })
    })
  }

  async #run(): Promise<void> {
    const { atOnce, onError } = this.#options
    while (this.#waiting.length > 0) {
      if (this.#waiting.length < atOnce) await this.#gather()
      const group = this.#waiting.slice(0, atOnce)
      try {
        await this.#write(group)
        this.#isFailing = false
        this.#leave(group)
      } catch (error) {
        this.#isFailing = true
        // A database that is away is so for all of them; anything else is the fault of one, which keeps the others
        // from being written only as long as they are in one transaction with it.
        const isAway = error instanceof PosternError
        if (!isAway) await this.#eachAlone(group)
        const late = isAway ? group.filter(({ until }) => performance.now() > until) : []
        onError(error, late.length)
        this.#leave(late)
        if (isAway) await new Promise((resolve) => setTimeout(resolve, retryMs))
      }
    }
    this.#isFailing = false
  }

  #gather(): Promise<void> {
    const { gatherMs = 0 } = this.#options
    return new Promise((resolve) => (gatherMs > 0 ? setTimeout(resolve, gatherMs) : setImmediate(resolve)))
  }

  #write(group: readonly Waiting<Item>[]): Promise<void> {
    return this.#options.write(group.map(({ item }) => item))
  }

  /** One that fails even so is left to whoever finds it undone. */
  async #eachAlone(group: readonly Waiting<Item>[]): Promise<void> {
    for (const one of group) {
      await this.#write([one]).catch((error: unknown) => this.#options.onError(error, 1))
      this.#leave([one])
    }
  }

  #leave(group: readonly Waiting<Item>[]): void {
    const gone = new Set(group)
    this.#waiting = this.#waiting.filter((one) => !gone.has(one))
    for (const { done } of group) done()
  }
}
