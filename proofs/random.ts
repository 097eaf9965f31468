/** A reproducible random number generator (Park and Miller): the same seed produces the same sequence. */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = (seed % 2_147_483_646) + 1
  }

  /** A number from 0 (inclusive) to 1 (exclusive). */
  next(): number {
    this.#state = (this.#state * 48_271) % 2_147_483_647
    return (this.#state - 1) / 2_147_483_646
  }

  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1))
  }
}
