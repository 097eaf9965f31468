import type { UnscopedDb } from '../../../platform/db/db.ts'
import { leaseSeconds } from './delivery-run.ts'
import {
  type Claim,
  type ClaimedQueue,
  claimQueues,
  findWork,
  takeWakes,
  type Work,
} from './endpoint-queues.sql.ts'
import { stepReplay } from './replays.ts'

export type { Claim, ClaimedQueue }

/** The queues of all endpoints, as one worker sees them. */
const wokenAtOnce = 1_000
const replaysAtOnce = 20

export class EndpointQueues {
  readonly #db: UnscopedDb

  constructor(db: UnscopedDb) {
    this.#db = db
  }

  look(): Promise<Work> {
    return this.#db.readOne(findWork)
  }

  /** Whether there may be more. */
  async wake(): Promise<boolean> {
    return (await this.#db.transaction((tx) => takeWakes(tx, wokenAtOnce))) === wokenAtOnce
  }

  claim(claims: { proven: Claim; unproven: Claim }): Promise<ClaimedQueue[]> {
    return this.#db.transaction((tx) => claimQueues(tx, claims, leaseSeconds))
  }

  async replay(): Promise<void> {
    for (let step = 0; step < replaysAtOnce; step++) {
      if (!(await this.#db.transaction(stepReplay))) return
    }
  }
}
