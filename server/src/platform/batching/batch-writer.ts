/**
 * Writes items in groups, one transaction each. Items submitted during a transaction are written in the next one. A group
 * that fails is split (split-on-failure.ts). While the database is unreachable, items are retried until their deadline. An
 * item that times out on its own is also retried on its own, so that it cannot make other items fail.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseAway, isOverdue } from '../db/failures.ts'
import { splitOnFailure } from './split-on-failure.ts'

interface Waiting<Item> {
  item: Item
  /** Deadline by the monotonic clock, after which the item is abandoned. */
  until: number
  done: () => void
}

export interface BatchWriterOptions<Item> {
  /** Writes all items in one transaction. */
  write(items: readonly Item[]): Promise<void>
  atOnce: number
  /** How long to wait for more items before each transaction; 0 waits for the current turn of the event loop. */
  gatherMs?: number
  onError(error: unknown, lost: number): void
}

const retryMs = 200

export class BatchWriter<Item> {
  readonly #options: BatchWriterOptions<Item>
  #waiting: Waiting<Item>[] = []
  /** Items that timed out in a transaction of their own. */
  #overdue: Waiting<Item>[] = []
  #underWay = 0
  #running: Promise<void> | undefined
  #isFailing = false

  constructor(options: BatchWriterOptions<Item>) {
    this.#options = options
  }

  /** Items not written yet, including those being written. */
  get pending(): number {
    return this.#waiting.length + this.#overdue.length + this.#underWay
  }

  get isFailing(): boolean {
    return this.#isFailing
  }

  /** Resolves when the item is written or abandoned. */
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
    // Nothing is awaited after `pending` is checked, so the next submit starts a new run.
    this.#running = undefined
  }

  #gather(): Promise<void> {
    const { gatherMs = 0 } = this.#options
    return new Promise((resolve) => (gatherMs > 0 ? setTimeout(resolve, gatherMs) : setImmediate(resolve)))
  }

  /** Returns whether some items must be retried. */
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
