/** A holder that already has bytes gets at most 1/4 of the budget, so that it cannot block all other holders. */
const shares = 4

interface Waiting<Holder> {
  size: number
  holder: Holder
  resolve: () => void
}

/**
 * Limits the number of bytes held in memory at the same time, with a share per holder (a project or an address). Requests
 * are served in order, except those of holders that have used up their share. A request larger than a share is granted only
 * to a holder without bytes.
 */
export class ByteBudget<Holder> {
  readonly #total: number
  #held = 0
  readonly #heldBy = new Map<Holder, number>()
  #waiting: Waiting<Holder>[] = []

  constructor(total: number) {
    this.#total = total
  }

  /**
   * Waits until there is room and resolves with a function that releases the bytes. A size above the budget counts as the
   * whole budget.
   */
  async take(size: number, holder: Holder): Promise<() => void> {
    const counted = Math.min(size, this.#total)
    await new Promise<void>((resolve) => {
      this.#waiting.push({ size: counted, holder, resolve })
      this.#serve()
    })
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      this.#add(-counted, holder)
      this.#serve()
    }
  }

  #serve(): void {
    let isFull = false
    this.#waiting = this.#waiting.filter(({ size, holder, resolve }) => {
      const held = this.#heldBy.get(holder) ?? 0
      const isShareUsed = held > 0 && held + size > this.#total / shares
      // Later requests do not overtake one that waits for room, or large requests would starve.
      if (!isShareUsed) isFull ||= this.#held + size > this.#total
      if (isShareUsed || isFull) return true
      this.#add(size, holder)
      resolve()
      return false
    })
  }

  #add(size: number, holder: Holder): void {
    this.#held += size
    const held = (this.#heldBy.get(holder) ?? 0) + size
    if (held > 0) this.#heldBy.set(holder, held)
    else this.#heldBy.delete(holder)
  }
}
