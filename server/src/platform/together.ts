interface Waiting<Asked, Answer> {
  asked: Asked
  resolve(answer: Answer): void
  reject(error: unknown): void
}

export interface TogetherOptions<Asked, Answer> {
  /** The answers, each at the place of what was asked. If it fails, it fails for the whole group. */
  answer(group: readonly Asked[]): Promise<readonly Answer[]>
  groupsAtOnce: number
  /** How many of those that wait, in their order, go into one group; at least one. */
  take(waiting: readonly Asked[]): number
}

/**
 * Whatever is asked while groups are under way goes together into the next one, so that what takes the time, a query or
 * a commit, is shared. Each is answered by work that began after it was asked.
 */
export class Together<Asked, Answer> {
  readonly #options: TogetherOptions<Asked, Answer>
  #waiting: Waiting<Asked, Answer>[] = []
  #running = 0

  constructor(options: TogetherOptions<Asked, Answer>) {
    this.#options = options
  }

  ask(asked: Asked): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ asked, resolve, reject })
      // Once this turn of the event loop is over: what was read from the network in it comes along.
      if (this.#waiting.length === 1) setImmediate(() => this.#next())
    })
  }

  #next(): void {
    const { groupsAtOnce, take } = this.#options
    while (this.#running < groupsAtOnce && this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, take(this.#waiting.map(({ asked }) => asked)))
      this.#running++
      void this.#answer(group).finally(() => {
        this.#running--
        this.#next()
      })
    }
  }

  async #answer(group: readonly Waiting<Asked, Answer>[]): Promise<void> {
    try {
      const answers = await this.#options.answer(group.map(({ asked }) => asked))
      for (const [place, { resolve }] of group.entries()) resolve(answers[place] as Answer)
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }
}
