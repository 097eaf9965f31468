import type { OneStatement, Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import {
  type Claimed,
  claimPacedRows,
  claimRows,
  findContent,
  findQueuedMessages,
  type LaneToClaim,
  purgePaces,
  type QueuedMessage,
} from './claims.sql.ts'
import { findOverdue, findSendable, type LaneKey } from './lanes.sql.ts'
import { Lanes, shareOf } from './lanes.ts'
import { awaitedSeconds } from './retry-policy.ts'
import {
  expireAwaiting,
  expireReady,
  findSweepable,
  promoteDue,
  recoverLeases,
  type Sweepable,
} from './sweep.sql.ts'

export type { Claimed, LaneKey, QueuedMessage, Sweepable }

// One worker's view of the mail queue (mail.dispatch): claims, sweeps and expiry. migrations/000003_mail.sql
// documents a row's states and transitions.
//
// A claim is a one-minute lease, committed before sending starts, so no transaction is open during network
// calls. All timestamps come from the database.

export const leaseSeconds = 60

/** Mail fails after this many days if it cannot be claimed (project blocked or provider unavailable). */
const maxReadyDays = 7
/** If there are more lanes, the rest are found once some of these are empty. */
const maxLanes = 10_000
const sweptAtOnce = 1_000

/** The number of messages that a worker can claim. */
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
    const found = await this.#db.readOne((tx) => findSendable(tx, maxLanes))
    this.#lanes.update(found)
  }

  get hasLanes(): boolean {
    return this.#lanes.size > 0
  }

  /** Claims messages from the lanes in the next round, limited by each lane's share and capacity. */
  async claim(capacity: ClaimCapacity): Promise<{ claimed: Claimed; message: QueuedMessage }[]> {
    const round = this.#lanes.nextRound((lane) => capacity.for(lane) > 0)
    if (round.length === 0) return []
    const share = shareOf(capacity.free, round.length)
    // At most one message from each large-mail lane, and `freeLarge` in total.
    let { freeLarge } = capacity
    const lanes = round
      .filter(({ is_large }) => !is_large || freeLarge-- > 0)
      .map((lane) => ({ ...lane, most: Math.min(share, capacity.for(lane)) }))
    const { claimed, messages } = await this.#db.transaction(async (tx) => {
      const claimed = await claimFrom(tx, lanes, capacity.free)
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

  /** What a sweep has to do. */
  findSweepable(): Promise<Sweepable> {
    return this.#db.readOne(findSweepable)
  }

  /**
   * Makes due messages ready, recovers expired leases, and fails messages for which no report arrived.
   * `hasReady` is true if messages became ready, and `hasResults` if another worker left unpublished results.
   */
  async sweep(found?: Sweepable): Promise<{ hasReady: boolean; hasResults: boolean }> {
    const { is_due, is_lost, is_awaited, has_results } = found ?? (await this.findSweepable())
    const steps = [
      ...(is_due ? [(tx: Tx) => promoteDue(tx, sweptAtOnce)] : []),
      ...(is_lost ? [(tx: Tx) => recoverLeases(tx, sweptAtOnce, awaitedSeconds)] : []),
      ...(is_awaited
        ? [(tx: Tx) => expireAwaiting(tx, { reply: missingReportReply, limit: sweptAtOnce })]
        : []),
    ]
    for (const step of steps) while ((await this.#db.transaction(step)) === sweptAtOnce);
    return { hasReady: is_due || is_lost, hasResults: has_results || is_awaited }
  }

  /** Fails messages that have been ready for too long. */
  async expire(): Promise<void> {
    const lanes = await this.#db.readOne((tx) => findOverdue(tx, maxReadyDays, maxLanes))
    for (const lane of lanes) {
      const step = (tx: Tx) =>
        expireReady(tx, lane, { days: maxReadyDays, reply: expiredReply, limit: sweptAtOnce })
      while ((await this.#db.transaction(step)) === sweptAtOnce);
    }
  }
}

/** Paced lanes come first, with their proportional share: after the others, they would get a slot only if one is left. */
async function claimFrom(
  tx: Tx,
  lanes: readonly (LaneToClaim & { isPaced: boolean })[],
  free: number,
): Promise<Claimed[]> {
  const [paced, others] = [lanes.filter(({ isPaced }) => isPaced), lanes.filter(({ isPaced }) => !isPaced)]
  const share = others.length === 0 ? free : Math.max(1, Math.floor((free * paced.length) / lanes.length))
  const claimed = paced.length > 0 ? await claimPacedRows(tx, paced, { limit: share, leaseSeconds }) : []
  const left = free - claimed.length
  if (others.length === 0 || left === 0) return claimed
  return [...claimed, ...(await claimRows(tx, others, { limit: left, leaseSeconds }))]
}

/** Deletes the state of paces that are over. */
export const purgeEndedPaces = (tx: OneStatement): Promise<number> => purgePaces(tx, purgedAtOnce)

const expiredReply = `Not sent within ${maxReadyDays} days: the project was locked, held or paced, or no mail server was available.`

const missingReportReply =
  'The message may have been sent: the connection to the provider was lost during submission, and the provider did not ' +
  'report within one hour that it accepted the message. It will not be sent again.'
