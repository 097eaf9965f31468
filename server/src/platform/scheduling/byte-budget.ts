/** A holder has this part of the budget at most, as long as it holds anything: it does not keep all others waiting. */
const shares = 4

interface Waiting<Holder> {
  size: number
  holder: Holder
  resolve: () => void
}

/**
 * A budget of bytes that are in memory at once, with a share for each holder (a project, an address). Served in order, but
 * for holders who have their share already. What is larger than a share is given to a holder that has nothing.
 */
export class ByteBudget<Holder> {
  readonly #total: number
  #held = 0
  readonly #heldBy = new Map<Holder, number>()
  #waiting: Waiting<Holder>[] = []

  constructor(total: number) {
    this.#total = total
  }

  /** Resolves when there is room, with a function that gives it back. What is larger than the budget takes all of it. */
  async take(size: number, holder: Holder): Promise<() => void> {
    const counted = Math.min(size, this.#total)
    await new Promise<void>((resolve) => {
      this.#waiting.push({ size: counted, holder, resolve })
      this.#serve()
    })
    let isBack = false
    return () => {
      if (isBack) return
      isBack = true
      this.#add(-counted, holder)
      this.#serve()
    }
  }

  #serve(): void {
    let isFull = false
    this.#waiting = this.#waiting.filter(({ size, holder, resolve }) => {
      const held = this.#heldBy.get(holder) ?? 0
      const isOwnFull = held > 0 && held + size > this.#total / shares
      // Nothing passes what waits for room, or what is large would wait forever.
      if (!isOwnFull) isFull ||= this.#held + size > this.#total
      if (isOwnFull || isFull) return true
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
