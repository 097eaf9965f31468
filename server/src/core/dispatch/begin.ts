import type { Db } from '../../platform/db/db.ts'
import { insertBegun } from './begin.sql.ts'
import type { Claimed } from './claim.sql.ts'

/**
 * Writes down attempts before they are made, many in one transaction: whatever comes while one is under way goes into
 * the next. From then on the mail is not tried again by whoever finds the lease run out.
 */
interface Waiting {
  claimed: Claimed
  withinSeconds: number
  resolve(isBegun: boolean): void
  reject(error: unknown): void
}

const atOnce = 100

export class Beginner {
  readonly #db: Db
  #waiting: Waiting[] = []
  #running: Promise<void> | undefined

  constructor(db: Db) {
    this.#db = db
  }

  /**
   * True once it is committed, and the call may be made. False when the lease is somebody else's, or ends before a call
   * would. Rejects when the database would not have it; then the call must not be made.
   */
  begin(claimed: Claimed, withinSeconds: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ claimed, withinSeconds, resolve, reject })
      this.#running ??= this.#run().finally(() => {
        this.#running = undefined
      })
    })
  }

  async #run(): Promise<void> {
    // Once this turn of the event loop is over, with what came in it.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, atOnce)
      try {
        const begun = new Set(
          await this.#db.transaction((tx) =>
            insertBegun(
              tx,
              group.map(({ claimed }) => claimed),
              group.map(({ withinSeconds }) => withinSeconds),
            ),
          ),
        )
        for (const [place, { resolve }] of group.entries()) resolve(begun.has(place))
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
    }
  }
}
