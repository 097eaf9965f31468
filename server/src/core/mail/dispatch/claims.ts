import type { Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { type Claimed, claimRows, findContent, findLetters, type Letter } from './claims.sql.ts'
import { findLanes, type LaneKey } from './lanes.sql.ts'
import { Lanes, shareOf } from './lanes.ts'
import { awaitedSeconds } from './retry-policy.ts'
import { expireAwaiting, expireReady, findSweepable, promoteDue, recoverLeases } from './sweep.sql.ts'

export type { Claimed, LaneKey, Letter }

/**
 * The queue as one worker sees it. A claim is a lease of a minute, committed before anything is sent, so no transaction
 * stays open while the network is spoken with; time is the database's alone.
 */
export const leaseSeconds = 60

/** Mail of a project that may not send, or of a provider that is away, waits this long and is then given up. */
const keptReadyDays = 7
/** More lanes than that at once, and the rest is found when some of these are empty. */
const maxLanes = 10_000
const sweptAtOnce = 1_000

/** How many mails a worker can take on. */
export interface ClaimCapacity {
  free: number
  /** Of large mails. */
  freeLarge: number
  for(lane: LaneKey): number
}

export class ClaimQueue {
  readonly #db: UnscopedDb
  readonly #lanes = new Lanes()

  constructor(db: UnscopedDb) {
    this.#db = db
  }

  /** Looks at the whole queue for lanes with mail. */
  async look(): Promise<void> {
    const found = await this.#db.readOne((tx) => findLanes(tx, { isOpen: true, limit: maxLanes }))
    this.#lanes.learn(found)
  }

  get hasLanes(): boolean {
    return this.#lanes.size > 0
  }

  /** Mails from as many lanes as have their turn, and no more of a lane than it has room for. */
  async claim(room: ClaimCapacity): Promise<{ claimed: Claimed; letter: Letter }[]> {
    const round = this.#lanes.nextRound((lane) => room.for(lane) > 0)
    if (round.length === 0) return []
    const share = shareOf(room.free, round.length)
    // Each large lane has room for one mail, and all of them together for a few.
    let { freeLarge } = room
    const lanes = round
      .filter(({ is_large }) => !is_large || freeLarge-- > 0)
      .map((lane) => ({ ...lane, most: Math.min(share, room.for(lane)) }))
    const { claimed, letters } = await this.#db.transaction(async (tx) => {
      const claimed = await claimRows(tx, lanes, { limit: room.free, leaseSeconds })
      const letters = claimed.length > 0 ? await findLetters(tx, claimed) : new Map<string, Letter>()
      return { claimed, letters }
    })
    this.#lanes.note(lanes, claimed)
    return claimed.map((one) => {
      const letter = letters.get(one.message_id)
      if (!letter) throw new Error(`message ${one.message_id} is to be sent and is not there`)
      return { claimed: one, letter }
    })
  }

  contentOf(claimed: Claimed): Promise<Buffer> {
    return this.#db.readOne((tx) => findContent(tx, claimed))
  }

  /**
   * Mails that were put off and are due, leases that ran out, and reports that never came. Says whether results are to
   * be published that another worker left behind.
   */
  async sweep(): Promise<{ hasResults: boolean }> {
    const { is_due, is_lost, is_awaited, has_results } = await this.#db.readOne(findSweepable)
    const steps = [
      ...(is_due ? [(tx: Tx) => promoteDue(tx, sweptAtOnce)] : []),
      ...(is_lost ? [(tx: Tx) => recoverLeases(tx, sweptAtOnce, awaitedSeconds)] : []),
      ...(is_awaited ? [(tx: Tx) => expireAwaiting(tx, { reply: neverTold, limit: sweptAtOnce })] : []),
    ]
    for (const step of steps) while ((await this.#db.transaction(step)) === sweptAtOnce);
    return { hasResults: has_results || is_awaited }
  }

  /** What has waited for too long. */
  async expire(): Promise<void> {
    const lanes = await this.#db.readOne((tx) =>
      findLanes(tx, { isOpen: false, readyForDays: keptReadyDays, limit: maxLanes }),
    )
    for (const lane of lanes) {
      const step = (tx: Tx) =>
        expireReady(tx, lane, { days: keptReadyDays, reply: gaveUp, limit: sweptAtOnce })
      while ((await this.#db.transaction(step)) === sweptAtOnce);
    }
  }
}

const gaveUp = `It could not be sent for ${keptReadyDays} days: the project was locked or held, or no mail server took it.`

const neverTold =
  'It may have been sent: the connection to the provider was lost while it was handed over, and the provider has not ' +
  'told within an hour that it has the mail. It is not sent again.'
