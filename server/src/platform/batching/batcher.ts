import { splitOnFailure } from './split-on-failure.ts'

interface Waiting<Asked, Answer> {
  asked: Asked
  resolve(answer: Answer): void
  reject(error: unknown): void
}

export interface BatcherOptions {
  groupsAtOnce?: number
  /** So long is waited for others before each group: worth it where a statement costs more than the wait. */
  gatherMs?: number
  /** Of one group. */
  atMost?: number
}

/**
 * Whatever is asked while groups are under way goes together into the next one, so that what takes the time, a query or
 * a commit, is shared. Each is answered by work that began after it was asked. A group that fails is split
 * (split-on-failure.ts).
 */
export class Batcher<Asked, Answer> {
  readonly #answerAll: (group: readonly Asked[]) => Promise<readonly Answer[]>
  readonly #groupsAtOnce: number
  readonly #gatherMs: number
  readonly #atMost: number
  #waiting: Waiting<Asked, Answer>[] = []
  #running = 0

  /** The answers of a group, each at the place of what was asked. If it fails, the group is split. */
  constructor(
    answerAll: (group: readonly Asked[]) => Promise<readonly Answer[]>,
    { groupsAtOnce = 1, gatherMs = 0, atMost = 100 }: BatcherOptions = {},
  ) {
    this.#answerAll = answerAll
    this.#groupsAtOnce = groupsAtOnce
    this.#gatherMs = gatherMs
    this.#atMost = atMost
  }

  ask(asked: Asked): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ asked, resolve, reject })
      if (this.#waiting.length === 1) this.#gather()
    })
  }

  #gather(): void {
    if (this.#gatherMs > 0) setTimeout(() => this.#next(), this.#gatherMs)
    // Once this turn of the event loop is over: what was read from the network in it comes along.
    else setImmediate(() => this.#next())
  }

  #next(): void {
    while (this.#running < this.#groupsAtOnce && this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, this.#atMost)
      this.#running++
      void this.#answer(group).finally(() => {
        this.#running--
        if (this.#gatherMs > 0) this.#gather()
        else this.#next()
      })
    }
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
