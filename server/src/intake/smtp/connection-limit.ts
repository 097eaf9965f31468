import { networkOf } from '../../platform/http/rate-limit.ts'

/**
 * Limits concurrent connections per network, so that a network with many hosts or connections does not crowd
 * out others.
 */
export class ConnectionLimit {
  readonly #maxPerNetwork: number
  readonly #counts = new Map<string, number>()

  constructor(maxPerNetwork: number) {
    this.#maxPerNetwork = maxPerNetwork
  }

  /**
   * Returns a function that releases the connection (calling it twice is safe), or undefined if the limit is
   * reached.
   */
  acquire(address: string): (() => void) | undefined {
    const network = networkOf(address)
    const open = this.count(network)
    if (open >= this.#maxPerNetwork) return undefined
    this.#counts.set(network, open + 1)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      const left = this.count(network) - 1
      if (left > 0) this.#counts.set(network, left)
      else this.#counts.delete(network)
    }
  }

  count(network: string): number {
    return this.#counts.get(network) ?? 0
  }
}
