import type { LaneKey } from './lanes.sql.ts'
import { keyOf } from './lanes.ts'

// The concurrency limit of a worker: each mail that is being handed over uses one slot. Limits how many slots a lane may use.
//
// Equal shares of claims are fair only if all mails take equally long. A lane of slow mails would in the end use all slots,
// however small its share. So a lane may use at most four fifths of the slots that it uses plus those that are free, and a
// lane that uses none may take the last one. A single lane therefore leaves a fifth of the slots unused. Three or more slow
// lanes that start one after the other can still use all slots.
//
// A worker hands over at most two large mails at once, of different projects: the content, the composed mail and the network
// buffer of each are in memory together. Capacity is checked before a claim, so every claim becomes an attempt.

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

  /** How many more mails of this lane may be claimed. `providerSlots`: the concurrency limit of its provider. */
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
