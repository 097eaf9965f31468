import type { Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { type Claimed, claimRows, findContent, findQueuedMessages, type QueuedMessage } from './claims.sql.ts'
import { findLanes, type LaneKey } from './lanes.sql.ts'
import { Lanes, shareOf } from './lanes.ts'
import { awaitedSeconds } from './retry-policy.ts'
import { expireAwaiting, expireReady, findSweepable, promoteDue, recoverLeases } from './sweep.sql.ts'

export type { Claimed, LaneKey, QueuedMessage }

// The mail queue (mail.dispatch) as one worker uses it: claims, sweeps and expiry. The states and transitions of a row are
// in migrations/000003_mail.sql.
//
// A claim is a lease of one minute, committed before anything is sent, so no transaction is open during network calls. All
// times are the database's.

export const leaseSeconds = 60

/** Mail that cannot be claimed (project blocked, provider unavailable) fails after this many days. */
const keptReadyDays = 7
/** Lanes beyond this number are found once some of these are empty. */
const maxLanes = 10_000
const sweptAtOnce = 1_000

/** How many mails a worker can claim. */
export interface ClaimCapacity {
  free: number
  freeLarge: number
  for(lane: LaneKey): number
}

export class ClaimQueue {
  readonly #db: UnscopedDb
  readonly #lanes = new Lanes()

  constructor(db: UnscopedDb) {
    this.#db = db
  }

  /** Finds all lanes with ready mail. */
  async refreshLanes(): Promise<void> {
    const found = await this.#db.readOne((tx) => findLanes(tx, { maySend: true, limit: maxLanes }))
    this.#lanes.update(found)
  }

  get hasLanes(): boolean {
    return this.#lanes.size > 0
  }

  /** Claims mails of the lanes of the next round, from each lane at most its share and its capacity. */
  async claim(capacity: ClaimCapacity): Promise<{ claimed: Claimed; message: QueuedMessage }[]> {
    const round = this.#lanes.nextRound((lane) => capacity.for(lane) > 0)
    if (round.length === 0) return []
    const share = shareOf(capacity.free, round.length)
    // One mail for each large lane, and `freeLarge` for all of them.
    let { freeLarge } = capacity
    const lanes = round
      .filter(({ is_large }) => !is_large || freeLarge-- > 0)
      .map((lane) => ({ ...lane, most: Math.min(share, capacity.for(lane)) }))
    const { claimed, messages } = await this.#db.transaction(async (tx) => {
      const claimed = await claimRows(tx, lanes, { limit: capacity.free, leaseSeconds })
      const messages =
        claimed.length > 0 ? await findQueuedMessages(tx, claimed) : new Map<string, QueuedMessage>()
      return { claimed, messages }
    })
    this.#lanes.recordRound(lanes, claimed)
    return claimed.map((one) => {
      const message = messages.get(one.message_id)
      if (!message) throw new Error(`message ${one.message_id} was claimed but does not exist`)
      return { claimed: one, message }
    })
  }

  contentOf(claimed: Claimed): Promise<Buffer> {
    return this.#db.readOne((tx) => findContent(tx, claimed))
  }

  /**
   * Makes due mails ready, recovers expired leases, and fails mails whose report did not arrive. `hasResults`: another
   * worker left results to publish.
   */
  async sweep(): Promise<{ hasResults: boolean }> {
    const { is_due, is_lost, is_awaited, has_results } = await this.#db.readOne(findSweepable)
    const steps = [
      ...(is_due ? [(tx: Tx) => promoteDue(tx, sweptAtOnce)] : []),
      ...(is_lost ? [(tx: Tx) => recoverLeases(tx, sweptAtOnce, awaitedSeconds)] : []),
      ...(is_awaited
        ? [(tx: Tx) => expireAwaiting(tx, { reply: missingReportReply, limit: sweptAtOnce })]
        : []),
    ]
    for (const step of steps) while ((await this.#db.transaction(step)) === sweptAtOnce);
    return { hasResults: has_results || is_awaited }
  }

  /** Fails mail that has been ready for too long. */
  async expire(): Promise<void> {
    const lanes = await this.#db.readOne((tx) =>
      findLanes(tx, { maySend: false, readyForDays: keptReadyDays, limit: maxLanes }),
    )
    for (const lane of lanes) {
      const step = (tx: Tx) =>
        expireReady(tx, lane, { days: keptReadyDays, reply: expiredReply, limit: sweptAtOnce })
      while ((await this.#db.transaction(step)) === sweptAtOnce);
    }
  }
}

const expiredReply = `Not sent within ${keptReadyDays} days: the project was locked or held, or no mail server was available.`

const missingReportReply =
  'The mail may have been sent: the connection to the provider was lost during the hand-over, and the provider did not ' +
  'report within one hour that it accepted the mail. It is not sent again.'
