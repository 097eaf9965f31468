/**
 * Writes items in groups, one transaction each: items submitted during one transaction go into the next. A group that
 * fails is split (split-on-failure.ts). While the database is unreachable, items are retried until their deadline. An
 * item that times out alone is retried alone, so that it fails no other group.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseAway, isOverdue } from '../db/failures.ts'
import { splitOnFailure } from './split-on-failure.ts'

interface Waiting<Item> {
  item: Item
  /** Deadline by the monotonic clock: after it, the item need not be written any more. */
  until: number
  done: () => void
}

export interface BatchWriterOptions<Item> {
  /** All of them in one transaction, or none. */
  write(items: readonly Item[]): Promise<void>
  atOnce: number
  /** How long to wait for more items before each transaction; 0: until this turn of the event loop ends. */
  gatherMs?: number
  onError(error: unknown, lost: number): void
}

const retryMs = 200

export class BatchWriter<Item> {
  readonly #options: BatchWriterOptions<Item>
  #waiting: Waiting<Item>[] = []
  /** Items that timed out when written alone. */
  #overdue: Waiting<Item>[] = []
  #underWay = 0
  #running: Promise<void> | undefined
  #isFailing = false

  constructor(options: BatchWriterOptions<Item>) {
    this.#options = options
  }

  /** How many items are not written yet, those being written included. */
  get pending(): number {
    return this.#waiting.length + this.#overdue.length + this.#underWay
  }

  get isFailing(): boolean {
    return this.#isFailing
  }

  /** Resolves when the item is written or given up. */
  submit(item: Item, until: number): Promise<void> {
    return new Promise((done) => {
      this.#waiting.push({ item, until, done })
      this.#running ??= this.#run()
    })
  }

  async #run(): Promise<void> {
    const { atOnce } = this.#options
    while (this.pending > 0) {
      if (this.#waiting.length < atOnce) await this.#gather()
      const group = this.#waiting.splice(0, atOnce)
      const again = group.length > 0 && (await this.#write(group))
      const one = this.#overdue.shift()
      const oneAgain = one !== undefined && (await this.#write([one]))
      if (again || oneAgain) await sleep(retryMs)
    }
    this.#isFailing = false
    // In the same turn in which nothing was left, so that an item submitted right after this starts a new run.
    this.#running = undefined
  }

  #gather(): Promise<void> {
    const { gatherMs = 0 } = this.#options
    return new Promise((resolve) => (gatherMs > 0 ? setTimeout(resolve, gatherMs) : setImmediate(resolve)))
  }

  /** Returns whether some items must be written again. */
  async #write(group: readonly Waiting<Item>[]): Promise<boolean> {
    const { write, onError } = this.#options
    this.#underWay = group.length
    const results = await splitOnFailure(group, async (part) => {
      await write(part.map(({ item }) => item))
      this.#underWay -= part.length
      for (const { done } of part) done()
      return part
    })
    const failed = group.flatMap((one, index) => {
      const result = results[index]
      return result && 'error' in result ? [{ one, error: result.error }] : []
    })
    this.#underWay = 0
    this.#isFailing = failed.length > 0
    const away: Waiting<Item>[] = []
    const errors = new Map<unknown, number>()
    for (const { one, error } of failed) {
      const isAway = isDatabaseAway(error)
      const isLost = !(isAway || isOverdue(error)) || performance.now() > one.until
      errors.set(error, (errors.get(error) ?? 0) + (isLost ? 1 : 0))
      if (isLost) one.done()
      else (isAway ? away : this.#overdue).push(one)
    }
    for (const [error, lost] of errors) onError(error, lost)
    this.#waiting.unshift(...away)
    return away.length > 0 || this.#overdue.length > 0
  }
}
