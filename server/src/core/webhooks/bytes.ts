/** A project has so much of it at most, as long as it holds anything: it does not keep all others waiting. */
const shares = 4

interface Waiting {
  size: number
  projectId: number
  resolve: () => void
}

/** So many bytes may be held at once; who comes first has them first, but for who has a share already. */
export class Bytes {
  readonly #total: number
  #held = 0
  readonly #heldBy = new Map<number, number>()
  #waiting: Waiting[] = []

  constructor(total: number) {
    this.#total = total
  }

  /** What is larger than all of it has all of it. */
  async take(size: number, projectId: number): Promise<() => void> {
    const counted = Math.min(size, this.#total)
    await new Promise<void>((resolve) => {
      this.#waiting.push({ size: counted, projectId, resolve })
      this.#serve()
    })
    let isBack = false
    return () => {
      if (isBack) return
      isBack = true
      this.#add(-counted, projectId)
      this.#serve()
    }
  }

  #serve(): void {
    let isFull = false
    this.#waiting = this.#waiting.filter(({ size, projectId, resolve }) => {
      const others = this.#heldBy.get(projectId) ?? 0
      const isOwnFull = others > 0 && others + size > this.#total / shares
      // Nobody is let past somebody who waits for room, or what is large would wait for ever.
      if (!isOwnFull) isFull ||= this.#held + size > this.#total
      if (isOwnFull || isFull) return true
      this.#add(size, projectId)
      resolve()
      return false
    })
  }

  #add(size: number, projectId: number): void {
    this.#held += size
    const held = (this.#heldBy.get(projectId) ?? 0) + size
    if (held > 0) this.#heldBy.set(projectId, held)
    else this.#heldBy.delete(projectId)
  }
}
