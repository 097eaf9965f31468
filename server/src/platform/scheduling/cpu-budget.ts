import type { Whose } from './fair-queue.ts'

const minuteMs = 60_000
/** The number of charges between two sweeps, which remove keys with an empty bucket. */
const sweepEvery = 1000

/**
 * CPU time budgets per minute for each sending network and each addressee (leaky buckets). A job's cost is known only when
 * the job ends, so it is charged at that point. While a bucket is full, its network or addressee cannot start jobs.
 *
 * Any sender can exhaust an addressee's budget. Therefore that budget does not apply to small jobs from a
 * quiet network, so a flood does not block other senders' mail to the same addressee. A network is quiet if
 * it has used little CPU time itself.
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
  /** A network below this level is quiet. */
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

  /** Milliseconds used and not yet drained. */
  levelOf(key: string): number {
    const level = this.#levels.get(key)
    if (!level) return 0
    return Math.max(0, level.ms - ((this.#now() - level.at) / minuteMs) * this.#perMinute)
  }
}
