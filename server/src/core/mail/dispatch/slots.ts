import type { LaneKey } from './lanes.sql.ts'
import { keyOf } from './lanes.ts'

/**
 * The places that mails take up while they are handed over, and how many more a lane may have.
 *
 * Shares of what is claimed are fair as long as every mail takes as long as every other. A lane whose mails take long
 * would have all places in the end, however small its share. So of the places that it has and those that are free
 * together, a lane may have four fifths, and whoever has none may have the last one. A lane by itself goes without a
 * fifth of the places. Three slow lanes and more that come one after the other can still have all of them.
 *
 * Of large mails a worker has two at once, of different projects: the content of each, what is composed of it and what is
 * on the wire are in memory together. Room for one is checked before it is claimed, so every claim becomes an attempt.
 */
const mostOfRoom = 0.8
const largeAtOnce = 2

export class Slots {
  readonly #total: number
  readonly #taken = new Map<string, number>()
  #count = 0

  constructor(total: number) {
    this.#total = total
  }

  get free(): number {
    return this.#total - this.#count
  }

  get freeLarge(): number {
    return Math.min(this.free, largeAtOnce - this.#of('large'))
  }

  take(lane: LaneKey): void {
    this.#count++
    for (const key of keysOf(lane)) this.#taken.set(key, this.#of(key) + 1)
  }

  leave(lane: LaneKey): void {
    this.#count--
    for (const key of keysOf(lane)) {
      const left = this.#of(key) - 1
      if (left > 0) this.#taken.set(key, left)
      else this.#taken.delete(key)
    }
  }

  /** `ofProvider`: how many mails its provider can have at once. */
  roomFor(lane: LaneKey, ofProvider: number): number {
    const free = Math.min(this.free, ofProvider - this.#of(lane.provider))
    if (free <= 0) return 0
    const busy = this.#of(keyOf(lane))
    if (lane.is_large) return busy === 0 && this.freeLarge > 0 ? 1 : 0
    return Math.max(busy === 0 ? 1 : 0, Math.floor(mostOfRoom * (busy + free)) - busy)
  }

  #of(key: string): number {
    return this.#taken.get(key) ?? 0
  }
}

const keysOf = (lane: LaneKey): string[] => [keyOf(lane), lane.provider, ...(lane.is_large ? ['large'] : [])]
