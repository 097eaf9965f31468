import { Batcher } from '../../../platform/batching/batcher.ts'
import type { Db } from '../../../platform/db/db.ts'
import { insertStarted } from './attempt-starter.sql.ts'
import type { Claimed } from './claims.sql.ts'

// Records attempts before the provider is called, many in one transaction. A mail with a recorded attempt is not sent again
// when its lease expires (sweep.sql.ts): the provider's report decides.

interface AttemptStart {
  claimed: Claimed
  withinSeconds: number
}

export class AttemptStarter {
  readonly #db: Db
  readonly #groups: Batcher<AttemptStart, boolean>

  constructor(db: Db) {
    this.#db = db
    this.#groups = new Batcher((group) => this.#write(group))
  }

  /**
   * True: the attempt is committed, and the provider may be called. False: another worker has the lease, or it ends too
   * early for a call. Rejects if the database fails; then the provider must not be called.
   */
  start(claimed: Claimed, withinSeconds: number): Promise<boolean> {
    return this.#groups.submit({ claimed, withinSeconds })
  }

  async #write(group: readonly AttemptStart[]): Promise<boolean[]> {
    const claimed = group.map((one) => one.claimed)
    const withinSeconds = group.map((one) => one.withinSeconds)
    const started = new Set(await this.#db.transaction((tx) => insertStarted(tx, claimed, withinSeconds)))
    return group.map((_, index) => started.has(index))
  }
}
