import type { Tx, UnscopedDb } from '../../platform/db/db.ts'
import { countDaily } from '../messages/daily.ts'
import { writeRecipientEvents } from '../messages/events.ts'
import { type Claimed, claimRows, findContent, findLetters, type Letter } from './claim.sql.ts'
import { findLanes, type LaneKey, type LaneRow } from './lanes.sql.ts'
import { Lanes, shareOf } from './lanes.ts'
import { awaitedSeconds } from './outcome.ts'
import {
  type Expired,
  expireAwaiting,
  expireReady,
  findSweepable,
  promoteDue,
  recoverLeases,
} from './sweep.sql.ts'

export type { Claimed, Letter }

/**
 * The queue as one worker sees it. A claim is a lease of a minute, committed before anything is sent, so no transaction
 * stays open while the network is spoken with; time is the database's alone.
 */
export const leaseSeconds = 60

/** Mail of a project that may not send, or of a provider that is away, waits this long and is then given up. */
const keptReadyDays = 7
/** More lanes than that at once, and the rest is found when some of these are empty. */
const maxLanes = 10_000
/** Larger bodies are read one by one, when they are sent. */
const maxContentBytes = 1024 * 1024
const sweptAtOnce = 1_000

export class Queue {
  readonly #db: UnscopedDb
  readonly #lanes = new Lanes()

  constructor(db: UnscopedDb) {
    this.#db = db
  }

  /** Looks at the whole queue for lanes with mail. */
  async look(): Promise<void> {
    const found = await this.#db.glance((tx) => findLanes(tx, { isOpen: true, limit: maxLanes }))
    this.#lanes.learn(found)
  }

  get hasLanes(): boolean {
    return this.#lanes.size > 0
  }

  /** Up to `free` mails, from as many lanes as have their turn, and no more of a lane than it has room for. */
  async claim(
    free: number,
    roomFor: (lane: LaneKey) => number,
  ): Promise<{ claimed: Claimed; letter: Letter }[]> {
    const round = this.#lanes.nextRound((lane) => roomFor(lane) > 0)
    if (round.length === 0) return []
    const share = shareOf(free, round.length)
    const lanes = round.map((lane) => ({ ...lane, most: Math.min(share, roomFor(lane)) }))
    const { claimed, letters } = await this.#db.transaction(async (tx) => {
      const claimed = await claimRows(tx, lanes, { limit: free, leaseSeconds })
      const letters =
        claimed.length > 0 ? await findLetters(tx, claimed, maxContentBytes) : new Map<string, Letter>()
      return { claimed, letters }
    })
    this.#lanes.note(round, claimed)
    return claimed.map((one) => {
      const letter = letters.get(one.message_id)
      if (!letter) throw new Error(`message ${one.message_id} is to be sent and is not there`)
      return { claimed: one, letter }
    })
  }

  contentOf(claimed: Claimed): Promise<Buffer> {
    return this.#db.glance((tx) => findContent(tx, claimed))
  }

  /** What was put off and is due, what somebody left behind, and what was waited for in vain. */
  async sweep(): Promise<void> {
    const { is_due, is_lost, is_awaited } = await this.#db.glance(findSweepable)
    const steps = [
      ...(is_due ? [(tx: Tx) => promoteDue(tx, sweptAtOnce)] : []),
      ...(is_lost ? [(tx: Tx) => recoverLeases(tx, sweptAtOnce, awaitedSeconds)] : []),
      ...(is_awaited ? [giveUpAwaiting] : []),
    ]
    for (const step of steps) while ((await this.#db.transaction(step)) === sweptAtOnce);
  }

  /** What has waited for too long. */
  async expire(): Promise<void> {
    const lanes = await this.#db.glance((tx) =>
      findLanes(tx, { isOpen: false, readyForDays: keptReadyDays, limit: maxLanes }),
    )
    for (const lane of lanes) {
      while ((await this.#db.transaction((tx) => expireLane(tx, lane))) === sweptAtOnce);
    }
  }
}

const gaveUp = `It could not be sent for ${keptReadyDays} days: the project was locked or held, or no mail server took it.`

async function expireLane(tx: Tx, lane: LaneRow): Promise<number> {
  return tellOf(tx, await expireReady(tx, lane, keptReadyDays, gaveUp, sweptAtOnce), gaveUp)
}

const neverTold =
  'It may have been sent: the connection to the provider was lost while it was handed over, and the provider has not ' +
  'told within an hour that it has the mail. It is not sent again.'

async function giveUpAwaiting(tx: Tx): Promise<number> {
  return tellOf(tx, await expireAwaiting(tx, neverTold, sweptAtOnce), neverTold)
}

/** Returns how many there were, those that need not be told of included. */
async function tellOf(tx: Tx, expired: readonly Expired[], why: string): Promise<number> {
  const failed = expired.filter(({ has_changed }) => has_changed)
  await writeRecipientEvents(
    tx,
    failed.map(({ project_id, message_id, recipient_no, recipient }) => ({
      projectId: project_id,
      messageId: message_id,
      recipientNo: recipient_no,
      type: 'message.failed',
      recipient,
      status: null,
      diagnostic: why,
    })),
  )
  await countDaily(
    tx,
    failed.map(({ project_id }) => ({ projectId: project_id, failed: 1 })),
  )
  return expired.length
}
