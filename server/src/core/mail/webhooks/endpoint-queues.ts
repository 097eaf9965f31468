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

// One worker's view of all endpoints' queues (mail.endpoint_queues). migrations/000003_mail.sql documents a
// queue's states and transitions.

export type { Claim, ClaimedQueue, Work }

const wakesAtOnce = 1_000
const replaysAtOnce = 20

export class EndpointQueues {
  readonly #db: UnscopedDb

  constructor(db: UnscopedDb) {
    this.#db = db
  }

  findWork(): Promise<Work> {
    return this.#db.readOne(findWork)
  }

  /** Returns true if there may be more wakes. */
  async wake(): Promise<boolean> {
    return (await this.#db.transaction((tx) => takeWakes(tx, wakesAtOnce))) === wakesAtOnce
  }

  claim(claims: { healthy: Claim; failing: Claim }): Promise<ClaimedQueue[]> {
    return this.#db.transaction((tx) => claimQueues(tx, claims, leaseSeconds))
  }

  async replay(): Promise<void> {
    for (let step = 0; step < replaysAtOnce; step++) {
      if (!(await this.#db.transaction(stepReplay))) return
    }
  }
}
