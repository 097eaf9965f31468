/**
 * The requests that a worker makes at once, and whose they may be.
 *
 * Endpoints that did not answer well the last time have places of their own, one each: dead receivers take none from
 * living ones, however many there are, nor from those that are asked for the first time. Of the others each may have
 * ten, and fewer the less there is left, so that those who answer slowly leave some to others. A project has no more of
 * them, whatever number of endpoints it has, than it leaves free: half, if it is alone.
 */
export interface SlotCounts {
  proven: number
  unproven: number
}

export const defaultSlots: SlotCounts = { proven: 400, unproven: 100 }

/** Of one endpoint's requests at once. */
export const widthAtMost = 10
/** A share of what is left that one endpoint may have. */
const shareOfRest = 8

export class Slots {
  readonly #total: SlotCounts
  readonly #busy: SlotCounts = { proven: 0, unproven: 0 }
  readonly #busyOf = new Map<number, number>()
  readonly #waiting = new Map<() => void, number>()

  constructor(total: SlotCounts = defaultSlots) {
    this.#total = total
  }

  free(standing: keyof SlotCounts): number {
    return this.#total[standing] - this.#busy[standing]
  }

  /** A place more for an endpoint of this project that has so many, and did not fail. */
  tryTake(has: number, projectId: number): boolean {
    const free = this.free('proven')
    const width = Math.min(widthAtMost, Math.max(1, Math.floor(free / shareOfRest)))
    if (has >= width || !this.#isFreeFor(projectId)) return false
    this.#count(projectId, 1)
    return true
  }

  leave(projectId: number): void {
    this.#count(projectId, -1)
    for (const [call, waiting] of this.#waiting) {
      if (!this.#isFreeFor(waiting)) continue
      this.#waiting.delete(call)
      call()
      return
    }
  }

  /** Calls once, when a place is free for this project. */
  onFree(call: () => void, projectId: number): void {
    this.#waiting.set(call, projectId)
  }

  forget(call: () => void): void {
    this.#waiting.delete(call)
  }

  /** The one place of an endpoint that failed. */
  takeUnproven(): void {
    this.#busy.unproven++
  }

  leaveUnproven(): void {
    this.#busy.unproven--
  }

  #isFreeFor(projectId: number): boolean {
    const free = this.free('proven')
    return free > 0 && (this.#busyOf.get(projectId) ?? 0) <= free
  }

  #count(projectId: number, more: number): void {
    this.#busy.proven += more
    const busy = (this.#busyOf.get(projectId) ?? 0) + more
    if (busy > 0) this.#busyOf.set(projectId, busy)
    else this.#busyOf.delete(projectId)
  }
}
