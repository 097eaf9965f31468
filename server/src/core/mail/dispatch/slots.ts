import type { LaneKey } from './lanes.sql.ts'
import { keyOf } from './lanes.ts'

// A worker's concurrency limit: each message uses one slot while it is being sent to the provider. This
// module limits how many slots one lane can use.
//
// Equal shares of claims are fair only if all messages take equally long. A lane of slow messages would
// eventually use all slots, however small its share. A lane can therefore use at most four fifths of the
// slots that are free or already its own, and only a lane that uses no slots can take the last one. As a
// result, a single lane leaves a fifth of the slots unused. Three or more slow lanes that start one after
// another can still use all slots.
//
// A worker sends at most two large messages concurrently, from different projects, because each message's
// content, composed form and network buffer are in memory at the same time. Capacity is checked before a
// claim, so every claim becomes an attempt.

const maxShare = 0.8
const largeAtOnce = 2

export class Slots {
  readonly #total: number
  readonly #used = new Map<string, number>()
  #count = 0

  constructor(total: number) {
    this.#total = total
  }

  get free(): number {
    return this.#total - this.#count
  }

  get freeLarge(): number {
    return Math.min(this.free, largeAtOnce - this.#usedBy('large'))
  }

  take(lane: LaneKey): void {
    this.#count++
    for (const key of keysOf(lane)) this.#used.set(key, this.#usedBy(key) + 1)
  }

  release(lane: LaneKey): void {
    this.#count--
    for (const key of keysOf(lane)) {
      const left = this.#usedBy(key) - 1
      if (left > 0) this.#used.set(key, left)
      else this.#used.delete(key)
    }
  }

  /**
   * How many more messages from this lane can be claimed. `providerSlots` is the provider's concurrency
   * limit.
   */
  capacityFor(lane: LaneKey, providerSlots: number): number {
    const free = Math.min(this.free, providerSlots - this.#usedBy(lane.provider))
    if (free <= 0) return 0
    const busy = this.#usedBy(keyOf(lane))
    if (lane.is_large) return busy === 0 && this.freeLarge > 0 ? 1 : 0
    return Math.max(busy === 0 ? 1 : 0, Math.floor(maxShare * (busy + free)) - busy)
  }

  #usedBy(key: string): number {
    return this.#used.get(key) ?? 0
  }
}

const keysOf = (lane: LaneKey): string[] => [keyOf(lane), lane.provider, ...(lane.is_large ? ['large'] : [])]
