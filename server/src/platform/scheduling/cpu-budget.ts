import type { Whose } from './fair-queue.ts'

const minuteMs = 60_000
/** Keys that have used nothing lately are looked for so often, counted in charges. */
const sweepEvery = 1000

/**
 * Processor time, with a budget a minute for each network and each addressee. What a job takes is known when it is over, so
 * it is charged then (a leaky bucket): one that has used up its budget starts nothing until enough of it has flowed back.
 *
 * Anybody can use up the budget of an addressee. So it does not count against small jobs of a quiet network, which is one
 * that has used little itself: whoever floods an addressee does not keep the mail of others from it.
 */
export class CpuBudget {
  readonly #networks: Buckets
  readonly #addressees: Buckets
  readonly #quietMs: number

  constructor(
    { perNetworkMs, perAddresseeMs, quietMs }: CpuBudgetOptions,
    now: () => number = () => performance.now(),
  ) {
    this.#quietMs = quietMs
    this.#networks = new Buckets(perNetworkMs, now)
    this.#addressees = new Buckets(perAddresseeMs, now)
  }

  isSpent({ network, addressee, isUnlimited }: Partial<Whose>, job: 'small' | 'any'): boolean {
    if (isUnlimited) return false
    if (network !== undefined && this.#networks.isFull(network)) return true
    const isQuiet = network !== undefined && this.#networks.levelOf(network) < this.#quietMs
    return addressee !== undefined && this.#addressees.isFull(addressee) && !(job === 'small' && isQuiet)
  }

  charge({ network, addressee, isUnlimited }: Whose, ms: number): void {
    if (isUnlimited) return
    this.#networks.add(network, ms)
    this.#addressees.add(addressee, ms)
  }
}

export interface CpuBudgetOptions {
  perNetworkMs: number
  perAddresseeMs: number
  /** A network that has used less is quiet. */
  quietMs: number
}

class Buckets {
  readonly #perMinute: number
  readonly #now: () => number
  readonly #levels = new Map<string, { ms: number; at: number }>()
  #charges = 0

  constructor(perMinute: number, now: () => number) {
    this.#perMinute = perMinute
    this.#now = now
  }

  isFull(key: string): boolean {
    return this.levelOf(key) >= this.#perMinute
  }

  add(key: string, ms: number): void {
    this.#levels.set(key, { ms: this.levelOf(key) + ms, at: this.#now() })
    if (++this.#charges % sweepEvery !== 0) return
    for (const other of this.#levels.keys()) if (this.levelOf(other) === 0) this.#levels.delete(other)
  }

  /** What it has used and has not flowed back. */
  levelOf(key: string): number {
    const level = this.#levels.get(key)
    if (!level) return 0
    return Math.max(0, level.ms - ((this.#now() - level.at) / minuteMs) * this.#perMinute)
  }
}
