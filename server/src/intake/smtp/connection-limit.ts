import { networkOf } from '../../platform/http/rate-limit.ts'

/** Who is inside, by network: one that has many machines, or many connections, leaves room for others. */
export class ConnectionLimit {
  readonly #mostPerNetwork: number
  readonly #inside = new Map<string, number>()

  constructor(mostPerNetwork: number) {
    this.#mostPerNetwork = mostPerNetwork
  }

  /** How to leave, which may be said twice; undefined where there are too many already. */
  enter(address: string): (() => void) | undefined {
    const network = networkOf(address)
    const others = this.insideOf(network)
    if (others >= this.#mostPerNetwork) return undefined
    this.#inside.set(network, others + 1)
    let isInside = true
    return () => {
      if (!isInside) return
      isInside = false
      const left = this.insideOf(network) - 1
      if (left > 0) this.#inside.set(network, left)
      else this.#inside.delete(network)
    }
  }

  insideOf(network: string): number {
    return this.#inside.get(network) ?? 0
  }
}
