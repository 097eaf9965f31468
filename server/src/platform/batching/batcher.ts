/**
 * Processes items in groups, which share a query or a commit. Items submitted while groups are running form the next
 * group. Work on an item always starts after the item was submitted. A group that fails is split (split-on-failure.ts).
 */

import { splitOnFailure } from './split-on-failure.ts'

interface Waiting<Item, Result> {
  item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

export interface BatcherOptions {
  groupsAtOnce?: number
  /** How long to wait for more items before each group: worthwhile if a statement costs more than the wait. */
  gatherMs?: number
  /** Maximum number of items in one group. */
  atMost?: number
}

export class Batcher<Item, Result> {
  readonly #process: (group: readonly Item[]) => Promise<readonly Result[]>
  readonly #groupsAtOnce: number
  readonly #gatherMs: number
  readonly #atMost: number
  #waiting: Waiting<Item, Result>[] = []
  #running = 0

  /** `process` returns the results of a group in the order of its items. A group that fails is split. */
  constructor(
    process: (group: readonly Item[]) => Promise<readonly Result[]>,
    { groupsAtOnce = 1, gatherMs = 0, atMost = 100 }: BatcherOptions = {},
  ) {
    this.#process = process
    this.#groupsAtOnce = groupsAtOnce
    this.#gatherMs = gatherMs
    this.#atMost = atMost
  }

  submit(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      if (this.#waiting.length === 1) this.#gather()
    })
  }

  #gather(): void {
    if (this.#gatherMs > 0) setTimeout(() => this.#next(), this.#gatherMs)
    // After this turn of the event loop, so that all requests read in it join the group.
    else setImmediate(() => this.#next())
  }

  #next(): void {
    while (this.#running < this.#groupsAtOnce && this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, this.#atMost)
      this.#running++
      void this.#processGroup(group).finally(() => {
        this.#running--
        if (this.#gatherMs > 0) this.#gather()
        else this.#next()
      })
    }
  }

  async #processGroup(group: readonly Waiting<Item, Result>[]): Promise<void> {
    const results = await splitOnFailure(
      group.map(({ item }) => item),
      this.#process,
    )
    for (const [index, { resolve, reject }] of group.entries()) {
      const result = results[index]
      if (!result) reject(new Error('a batch returned fewer results than items'))
      else if ('error' in result) reject(result.error)
      else resolve(result.value)
    }
  }
}
