/** The seed of this run. `POSTERN_TEST_SEED` sets the seed for all files, to repeat a run. */
export const seed = Number(process.env['POSTERN_TEST_SEED'] ?? Date.now() % 1_000_000_000)

/**
 * A seeded random number generator: the same seed produces the same sequence. (Mulberry32: small, and good enough
 * for tests.)
 */
export class Chance {
  readonly seed: number
  #state: number

  constructor(seed: number) {
    this.seed = seed
    this.#state = seed >>> 0
  }

  /** A number from 0 (inclusive) to 1 (exclusive). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }

  below(bound: number): number {
    return Math.floor(this.next() * bound)
  }

  happens(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(from: readonly T[]): T {
    const found = from[this.below(from.length)]
    if (found === undefined) throw new Error('nothing to pick from')
    return found
  }

  /** A random selection of `count` items, or all items if there are fewer. */
  some<T>(count: number, from: readonly T[]): T[] {
    const left = [...from]
    while (left.length > count) left.splice(this.below(left.length), 1)
    return left
  }
}
