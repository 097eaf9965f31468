import { Batcher } from '../../../platform/batching/batcher.ts'
import type { Db } from '../../../platform/db/db.ts'
import { insertStarted } from './attempt-starter.sql.ts'
import type { Claimed } from './claims.sql.ts'

// Records attempts in batches before the provider is called, with one transaction per batch. A message with a
// recorded attempt is not sent again when its lease expires (sweep.sql.ts): the provider's report determines
// its outcome.

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
   * Resolves to true if the attempt is committed and the provider can be called, or to false if another
   * worker holds the lease or the lease expires too soon for a call. Rejects if the database fails; the
   * provider must not be called in that case.
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
