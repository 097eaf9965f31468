import { splitOnFailure } from './split-on-failure.ts'

interface Waiting<Asked, Answer> {
  asked: Asked
  resolve(answer: Answer): void
  reject(error: unknown): void
}

const kinds = ['small', 'large'] as const
export type Kind = (typeof kinds)[number]

export interface FairGroupsOptions<Asked> {
  tenantOf(asked: Asked): number
  kindOf(asked: Asked): Kind
  /** Of each kind. */
  groupsAtOnce: number
  /** The room of one group: whether what is asked fits into what is left of it, and takes that. The first of a group fits. */
  newRoom(): (asked: Asked) => boolean
}

/**
 * Groups as in batcher.ts, of many tenants, with a share for each: a group takes one of each tenant's in turn until it is
 * full. A tenant is in one group at a time, because what it has under way may hold locks that its next group needs: others
 * would wait with it. Large and small do not share a group, and no tenant's waits for groups of the other kind of others. A
 * tenant that has both waiting has them in turn.
 */
export class FairGroups<Asked, Answer> {
  readonly #answerAll: (group: readonly Asked[]) => Promise<readonly Answer[]>
  readonly #options: FairGroupsOptions<Asked>
  /** By tenant, in the order of their turns. */
  readonly #waiting: Record<Kind, Map<number, Waiting<Asked, Answer>[]>> = {
    small: new Map(),
    large: new Map(),
  }
  readonly #running: Record<Kind, number> = { small: 0, large: 0 }
  readonly #busy = new Set<number>()
  /** Of tenants that have something waiting or under way. */
  readonly #lastKind = new Map<number, Kind>()
  #isScheduled = false

  /** The answers of a group, each at the place of what was asked. If it fails, the group is split. */
  constructor(
    answerAll: (group: readonly Asked[]) => Promise<readonly Answer[]>,
    options: FairGroupsOptions<Asked>,
  ) {
    this.#answerAll = answerAll
    this.#options = options
  }

  ask(asked: Asked): Promise<Answer> {
    const tenant = this.#options.tenantOf(asked)
    const waiting = this.#waiting[this.#options.kindOf(asked)]
    return new Promise((resolve, reject) => {
      const own = waiting.get(tenant)
      if (own) own.push({ asked, resolve, reject })
      else waiting.set(tenant, [{ asked, resolve, reject }])
      if (this.#isScheduled) return
      this.#isScheduled = true
      // Once this turn of the event loop is over: what was read from the network in it comes along.
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

  #gather(kind: Kind): Waiting<Asked, Answer>[] {
    const hasRoom = this.#options.newRoom()
    const waiting = this.#waiting[kind]
    const group: Waiting<Asked, Answer>[] = []
    for (let before = -1; before < group.length; ) {
      before = group.length
      for (const [tenant, own] of [...waiting]) {
        const [first] = own
        if (!first || this.#busy.has(tenant) || this.#isTurnOfOther(tenant, kind)) continue
        if (!hasRoom(first.asked) && group.length > 0) return group
        group.push(first)
        own.shift()
        // Behind the others: it had its turn.
        waiting.delete(tenant)
        if (own.length > 0) waiting.set(tenant, own)
      }
    }
    return group
  }

  #start(kind: Kind, group: readonly Waiting<Asked, Answer>[]): void {
    const tenants = group.map(({ asked }) => this.#options.tenantOf(asked))
    this.#running[kind]++
    for (const tenant of tenants) {
      this.#busy.add(tenant)
      this.#lastKind.set(tenant, kind)
    }
    void this.#answer(group).finally(() => {
      this.#running[kind]--
      for (const tenant of tenants) {
        this.#busy.delete(tenant)
        if (!this.#waiting.small.has(tenant) && !this.#waiting.large.has(tenant))
          this.#lastKind.delete(tenant)
      }
      this.#next()
    })
  }

  /** Otherwise a tenant with small ones without end would never have a large one answered. */
  #isTurnOfOther(tenant: number, kind: Kind): boolean {
    const other = kind === 'small' ? 'large' : 'small'
    return this.#lastKind.get(tenant) === kind && this.#waiting[other].has(tenant)
  }

  async #answer(group: readonly Waiting<Asked, Answer>[]): Promise<void> {
    const settled = await splitOnFailure(
      group.map(({ asked }) => asked),
      this.#answerAll,
    )
    for (const [place, { resolve, reject }] of group.entries()) {
      const answer = settled[place]
      if (!answer) reject(new Error('a group was answered in part'))
      else if ('error' in answer) reject(answer.error)
      else resolve(answer.value)
    }
  }
}
