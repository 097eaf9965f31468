import { Batcher } from '../../../platform/batching/batcher.ts'
import type { Db } from '../../../platform/db/db.ts'
import { insertBegun } from './attempt-starter.sql.ts'
import type { Claimed } from './claims.sql.ts'

interface Beginning {
  claimed: Claimed
  withinSeconds: number
}

/**
 * Writes down attempts before they are made, many in one transaction. From then on the mail is not tried again by
 * whoever finds the lease run out.
 */
export class AttemptStarter {
  readonly #db: Db
  readonly #groups: Batcher<Beginning, boolean>

  constructor(db: Db) {
    this.#db = db
    this.#groups = new Batcher((group) => this.#write(group))
  }

  /**
   * True once it is committed, and the call may be made. False when the lease is somebody else's, or ends before a call
   * would. Rejects when the database would not have it; then the call must not be made.
   */
  begin(claimed: Claimed, withinSeconds: number): Promise<boolean> {
    return this.#groups.ask({ claimed, withinSeconds })
  }

  async #write(group: readonly Beginning[]): Promise<boolean[]> {
    const claimed = group.map((one) => one.claimed)
    const withinSeconds = group.map((one) => one.withinSeconds)
    const begun = new Set(await this.#db.transaction((tx) => insertBegun(tx, claimed, withinSeconds)))
    return group.map((_, place) => begun.has(place))
  }
}
