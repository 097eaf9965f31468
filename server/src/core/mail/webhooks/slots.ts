// The concurrency limit for a worker's webhook requests: each request uses one slot.
//
// Failing endpoints have separate slots, one per endpoint, so dead receivers never take slots from healthy
// or new endpoints. A healthy endpoint can use ten slots, or fewer when few are free, so slow endpoints
// leave some for others. All of a project's endpoints together can use at most as many slots as remain
// free: half of all slots if no other project is using any.

export interface SlotCounts {
  healthy: number
  failing: number
}

export const defaultSlots: SlotCounts = { healthy: 400, failing: 100 }

/** Concurrent requests to one endpoint. */
export const maxPerEndpoint = 10
/** One endpoint can use this fraction (1/8) of the free slots. */
const freeSlotsShare = 8

export class WebhookSlots {
  readonly #total: SlotCounts
  readonly #busy: SlotCounts = { healthy: 0, failing: 0 }
  readonly #busyOf = new Map<number, number>()
  readonly #waiting = new Map<() => void, number>()

  constructor(total: SlotCounts = defaultSlots) {
    this.#total = total
  }

  free(health: keyof SlotCounts): number {
    return this.#total[health] - this.#busy[health]
  }

  /** Takes one more slot for one of this project's healthy endpoints, which already uses `has` slots. */
  tryTake(has: number, projectId: number): boolean {
    const free = this.free('healthy')
    const width = Math.min(maxPerEndpoint, Math.max(1, Math.floor(free / freeSlotsShare)))
    if (has >= width || !this.#isFreeFor(projectId)) return false
    this.#count(projectId, 1)
    return true
  }

  release(projectId: number): void {
    this.#count(projectId, -1)
    for (const [call, waiting] of this.#waiting) {
      if (!this.#isFreeFor(waiting)) continue
      this.#waiting.delete(call)
      call()
      return
    }
  }

  /** Calls `call` once, when a slot is free for this project. */
  onFree(call: () => void, projectId: number): void {
    this.#waiting.set(call, projectId)
  }

  cancelWait(call: () => void): void {
    this.#waiting.delete(call)
  }

  /** Takes the single slot of a failing endpoint. */
  takeFailing(): void {
    this.#busy.failing++
  }

  releaseFailing(): void {
    this.#busy.failing--
  }

  #isFreeFor(projectId: number): boolean {
    const free = this.free('healthy')
    return free > 0 && (this.#busyOf.get(projectId) ?? 0) <= free
  }

  #count(projectId: number, more: number): void {
    this.#busy.healthy += more
    const busy = (this.#busyOf.get(projectId) ?? 0) + more
    if (busy > 0) this.#busyOf.set(projectId, busy)
    else this.#busyOf.delete(projectId)
  }
}
