/**
 * Groups items like batcher.ts, but fairly between tenants: a group takes one item per tenant, round-robin, until it is
 * full. A tenant is in at most one running group, because its next group could wait for locks held by the first and delay
 * other tenants. Large and small items never share a group, so small items do not wait for other tenants' large items. A
 * tenant with both kinds waiting alternates between them.
 */

import { splitOnFailure } from './split-on-failure.ts'

interface Waiting<Item, Result> {
  item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

const kinds = ['small', 'large'] as const
export type GroupKind = (typeof kinds)[number]

export interface FairGroupsOptions<Item> {
  tenantOf(item: Item): number
  kindOf(item: Item): GroupKind
  /** Maximum number of concurrent groups of each kind. */
  groupsAtOnce: number
  /** How long to wait for more items before each group. Useful if a group has a high fixed cost. */
  gatherMs?: number
  /** With `gatherMs`: a group starts as soon as this many items are waiting. */
  gatherItems?: number
  /**
   * While a group is running, the next one starts only after this time, so that it is larger. A group that waits for a
   * lock therefore delays the next one by no more than this.
   */
  overlapMs?: number
  /** Starts a group. The returned function reserves capacity for an item, or returns false. The first item is always added. */
  newRoom(): (item: Item) => boolean
}

export class FairGroups<Item, Result> {
  readonly #process: (group: readonly Item[]) => Promise<readonly Result[]>
  readonly #options: FairGroupsOptions<Item>
  /** By tenant, in round-robin order. */
  readonly #waiting: Record<GroupKind, Map<number, Waiting<Item, Result>[]>> = {
    small: new Map(),
    large: new Map(),
  }
  readonly #running: Record<GroupKind, number> = { small: 0, large: 0 }
  /** The tenants in running groups, with their numbers of items. */
  readonly #busy = new Map<number, number>()
  /** The kind of each active tenant's last group. */
  readonly #lastKind = new Map<number, GroupKind>()
  #isScheduled = false
  #gathering: NodeJS.Timeout | undefined
  #waitingItems = 0
  /** When the last group of each kind started. */
  readonly #startedAt: Record<GroupKind, number> = { small: 0, large: 0 }
  #overlap: NodeJS.Timeout | undefined

  /** `process` returns the results of a group in the order of its items. A group that fails is split. */
  constructor(
    process: (group: readonly Item[]) => Promise<readonly Result[]>,
    options: FairGroupsOptions<Item>,
  ) {
    this.#process = process
    this.#options = options
  }

  submit(item: Item): Promise<Result> {
    const tenant = this.#options.tenantOf(item)
    const waiting = this.#waiting[this.#options.kindOf(item)]
    this.#waitingItems++
    return new Promise((resolve, reject) => {
      const own = waiting.get(tenant)
      if (own) own.push({ item, resolve, reject })
      else waiting.set(tenant, [{ item, resolve, reject }])
      this.#schedule()
      if (this.#waitingItems === this.#options.gatherItems) this.#stopGathering()
    })
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    const start = () => {
      this.#isScheduled = false
      this.#gathering = undefined
      this.#next()
    }
    const { gatherMs = 0, gatherItems = Number.POSITIVE_INFINITY } = this.#options
    if (gatherMs > 0 && this.#waitingItems < gatherItems) this.#gathering = setTimeout(start, gatherMs)
    // After this turn of the event loop, so that all requests read in it join the group.
    else setImmediate(start)
  }

  /** Ends the wait for more items. */
  #stopGathering(): void {
    if (!this.#gathering) return
    clearTimeout(this.#gathering)
    this.#gathering = undefined
    this.#isScheduled = false
    this.#schedule()
  }

  #next(): void {
    const { groupsAtOnce, overlapMs = 0 } = this.#options
    for (const kind of kinds) {
      while (this.#running[kind] < groupsAtOnce) {
        if (this.#waiting[kind].size === 0) break
        const waitMs = this.#running[kind] > 0 ? this.#startedAt[kind] + overlapMs - performance.now() : 0
        if (waitMs > 0) {
          this.#nextAfter(waitMs)
          break
        }
        const group = this.#gather(kind)
        if (group.length === 0) break
        this.#start(kind, group)
      }
    }
  }

  #nextAfter(ms: number): void {
    this.#overlap ??= setTimeout(() => {
      this.#overlap = undefined
      this.#next()
    }, ms)
  }

  #gather(kind: GroupKind): Waiting<Item, Result>[] {
    const hasRoom = this.#options.newRoom()
    const waiting = this.#waiting[kind]
    const group: Waiting<Item, Result>[] = []
    for (let before = -1; before < group.length; ) {
      before = group.length
      for (const [tenant, own] of [...waiting]) {
        const [first] = own
        if (!first || this.#busy.has(tenant) || this.#isTurnOfOther(tenant, kind)) continue
        if (!hasRoom(first.item) && group.length > 0) return group
        group.push(first)
        own.shift()
        this.#waitingItems--
        // Moves the tenant to the end of the round-robin order.
        waiting.delete(tenant)
        if (own.length > 0) waiting.set(tenant, own)
      }
    }
    return group
  }

  #start(kind: GroupKind, group: readonly Waiting<Item, Result>[]): void {
    this.#running[kind]++
    this.#startedAt[kind] = performance.now()
    for (const { item } of group) {
      const tenant = this.#options.tenantOf(item)
      this.#busy.set(tenant, (this.#busy.get(tenant) ?? 0) + 1)
      this.#lastKind.set(tenant, kind)
    }
    void this.#processGroup(group).finally(() => {
      this.#running[kind]--
      this.#continue()
    })
  }

  #continue(): void {
    if (this.#options.gatherMs === undefined) this.#next()
    else this.#schedule()
  }

  /** An item is done. Its tenant can be in another group once all of its items in this one are done. */
  #release({ item }: Waiting<Item, Result>): void {
    const tenant = this.#options.tenantOf(item)
    const left = (this.#busy.get(tenant) ?? 1) - 1
    if (left > 0) {
      this.#busy.set(tenant, left)
      return
    }
    this.#busy.delete(tenant)
    if (!this.#waiting.small.has(tenant) && !this.#waiting.large.has(tenant)) this.#lastKind.delete(tenant)
  }

  /** Otherwise an endless stream of small items would starve the tenant's large ones. */
  #isTurnOfOther(tenant: number, kind: GroupKind): boolean {
    const other = kind === 'small' ? 'large' : 'small'
    return this.#lastKind.get(tenant) === kind && this.#waiting[other].has(tenant)
  }

  /** If the group is split, items are done when their part is done. They do not wait for the part that fails. */
  async #processGroup(group: readonly Waiting<Item, Result>[]): Promise<void> {
    const results = await splitOnFailure(group, async (part) => {
      const values = await this.#process(part.map(({ item }) => item))
      if (values.length !== part.length) throw new Error('a batch returned fewer results than items')
      for (const [index, one] of part.entries()) {
        one.resolve(values[index] as Result)
        this.#release(one)
      }
      if (part.length < group.length) this.#continue()
      return values
    })
    for (const [index, one] of group.entries()) {
      const result = results[index]
      if (!result || !('error' in result)) continue
      one.reject(result.error)
      this.#release(one)
    }
  }
}
