import type { Claimed } from './claims.sql.ts'
import type { LaneKey, LaneRow } from './lanes.sql.ts'

// Round-robin scheduling over the lanes in which a worker has found mail. Every lane gets the same share of
// each round, regardless of its length: a project with 200,000 messages delays a project with one message by
// one round, not by 200,000 messages.
//
// Each lane has a watermark: no ready message in the lane is due before it. Claimed and deleted rows stay in
// the index until no snapshot can see them, and without the watermark each claim would have to skip all of
// them. A row becomes visible slightly after its due time, so the watermark lags by `settlingMs`. `update`
// resets the watermark to the oldest ready message.

const settlingMs = 2_000

interface Lane extends LaneKey {
  /** No ready message in the lane is due before this time. */
  watermark: Date
  isPaced: boolean
  emptyRounds: number
}

/** Each lane in a round costs one index probe. */
const maxLanesPerRound = 64
/** After this many rounds without mail, a lane is removed until the next `update`. */
const maxEmptyRounds = 20

export class Lanes {
  #lanes = new Map<string, Lane>()
  /** Index of the lane at which the next round starts. */
  #next = 0

  get size(): number {
    return this.#lanes.size
  }

  /** Adds or resets the lanes that a scan of the queue found. */
  update(found: readonly LaneRow[]): void {
    for (const { oldest, is_paced: isPaced, ...lane } of found) {
      this.#lanes.set(keyOf(lane), { ...lane, watermark: oldest, isPaced, emptyRounds: 0 })
    }
  }

  /** Returns the lanes of the next round, limited to lanes with capacity. */
  nextRound(hasCapacity: (lane: LaneKey) => boolean): Lane[] {
    const all = [...this.#lanes.values()].filter(hasCapacity)
    if (all.length === 0) return []
    const start = this.#next % all.length
    const round = [...all.slice(start), ...all.slice(0, start)].slice(0, maxLanesPerRound)
    // If every lane is in the round, the next round starts with the next lane: there may be more lanes than free slots.
    this.#next = start + (round.length === all.length ? 1 : round.length)
    return round
  }

  /** Advances the watermarks of the round's lanes past the claimed messages. */
  recordRound(round: readonly LaneKey[], claimed: readonly Claimed[]): void {
    const newest = new Map<string, number>()
    for (const row of claimed) {
      const key = keyOf(row)
      newest.set(key, Math.max(newest.get(key) ?? 0, row.due_at.getTime()))
    }
    for (const asked of round) {
      const key = keyOf(asked)
      const lane = this.#lanes.get(key)
      if (!lane) continue
      const newestDue = newest.get(key)
      if (newestDue === undefined) {
        lane.emptyRounds++
        if (lane.emptyRounds > maxEmptyRounds) this.#lanes.delete(key)
      } else {
        lane.emptyRounds = 0
        lane.watermark = new Date(Math.max(lane.watermark.getTime(), newestDue - settlingMs))
      }
    }
  }
}

export const keyOf = ({ shard, project_id, provider, is_large }: LaneKey): string =>
  `${shard} ${project_id} ${provider}${is_large ? ' large' : ''}`

/** Each lane's share of a round: at least one message. */
export const shareOf = (free: number, lanes: number): number =>
  Math.max(1, Math.floor(free / Math.max(1, lanes)))
