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
  readonly #busy = new Set<number>()
  /** The kind of each active tenant's last group. */
  readonly #lastKind = new Map<number, GroupKind>()
  #isScheduled = false

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
    return new Promise((resolve, reject) => {
      const own = waiting.get(tenant)
      if (own) own.push({ item, resolve, reject })
      else waiting.set(tenant, [{ item, resolve, reject }])
      if (this.#isScheduled) return
      this.#isScheduled = true
      // After this turn of the event loop, so that all requests read in it join the group.
      setImmediate(() => {
        this.#isScheduled = false
        this.#next()
      })
    })
  }

  #next(): void {
    for (const kind of kinds) {
      while (this.#running[kind] < this.#options.groupsAtOnce) {
        const group = this.#gather(kind)
        if (group.length === 0) break
        this.#start(kind, group)
      }
    }
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
        // Moves the tenant to the end of the round-robin order.
        waiting.delete(tenant)
        if (own.length > 0) waiting.set(tenant, own)
      }
    }
    return group
  }

  #start(kind: GroupKind, group: readonly Waiting<Item, Result>[]): void {
    const tenants = group.map(({ item }) => this.#options.tenantOf(item))
    this.#running[kind]++
    for (const tenant of tenants) {
      this.#busy.add(tenant)
      this.#lastKind.set(tenant, kind)
    }
    void this.#processGroup(group).finally(() => {
      this.#running[kind]--
      for (const tenant of tenants) {
        this.#busy.delete(tenant)
        if (!this.#waiting.small.has(tenant) && !this.#waiting.large.has(tenant))
          this.#lastKind.delete(tenant)
      }
      this.#next()
    })
  }

  /** Otherwise an endless stream of small items would starve the tenant's large ones. */
  #isTurnOfOther(tenant: number, kind: GroupKind): boolean {
    const other = kind === 'small' ? 'large' : 'small'
    return this.#lastKind.get(tenant) === kind && this.#waiting[other].has(tenant)
  }

  async #processGroup(group: readonly Waiting<Item, Result>[]): Promise<void> {
    const results = await splitOnFailure(
      group.map(({ item }) => item),
      this.#process,
    )
    for (const [index, { resolve, reject }] of group.entries()) {
      const result = results[index]
      if (!result) reject(new Error('a batch returned fewer results than items'))
      else if ('error' in result) reject(result.error)
      else resolve(result.value)
    }
  }
}
