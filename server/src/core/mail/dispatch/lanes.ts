import type { Claimed } from './claims.sql.ts'
import type { LaneKey, LaneRow } from './lanes.sql.ts'

/**
 * The lanes that a worker knows to have mail, and whose turn it is. Every lane has the same share of each round,
 * however much waits in it: a project with 200,000 mails delays one with a single mail by one round, not by 200,000.
 *
 * Each lane has a watermark: nothing in it that is ready is older. Rows that were claimed and are deleted stay in the
 * index until no snapshot can see them; without the mark each claim would step over all of them. A row becomes visible
 * a little after the moment it is dated from, so the mark stays that much behind, and a new look at the lanes
 * (`learn`), which asks for what is oldest, sets it anew.
 */
const settlingMs = 2_000

interface Lane extends LaneKey {
  /** Nothing that is ready is older than this. */
  watermark: Date
  emptyRounds: number
}

/** Of lanes that are asked at once: each costs an entry into an index. */
const maxLanesPerRound = 64
/** A lane that gave nothing so often in a row is left to the next look. */
const maxEmptyRounds = 20

export class Lanes {
  #lanes = new Map<string, Lane>()
  /** Where the next round begins. */
  #turn = 0

  get size(): number {
    return this.#lanes.size
  }

  /** What a look at the whole queue has found. */
  learn(found: readonly LaneRow[]): void {
    for (const { oldest, ...lane } of found) {
      this.#lanes.set(keyOf(lane), { ...lane, watermark: oldest, emptyRounds: 0 })
    }
  }

  /** Whose turn it is, of those that have room for mail. */
  nextRound(hasRoom: (lane: LaneKey) => boolean): Lane[] {
    const all = [...this.#lanes.values()].filter(hasRoom)
    if (all.length === 0) return []
    const start = this.#turn % all.length
    const round = [...all.slice(start), ...all.slice(0, start)].slice(0, maxLanesPerRound)
    this.#turn = start + round.length
    return round
  }

  /** What a round gave. */
  note(round: readonly LaneKey[], claimed: readonly Claimed[]): void {
    const newest = new Map<string, number>()
    for (const row of claimed) {
      const key = keyOf(row)
      newest.set(key, Math.max(newest.get(key) ?? 0, row.due_at.getTime()))
    }
    for (const asked of round) {
      const key = keyOf(asked)
      const lane = this.#lanes.get(key)
      if (!lane) continue
      const seen = newest.get(key)
      if (seen === undefined) {
        lane.emptyRounds++
        if (lane.emptyRounds > maxEmptyRounds) this.#lanes.delete(key)
      } else {
        lane.emptyRounds = 0
        lane.watermark = new Date(Math.max(lane.watermark.getTime(), seen - settlingMs))
      }
    }
  }
}

export const keyOf = ({ shard, project_id, provider, is_large }: LaneKey): string =>
  `${shard} ${project_id} ${provider}${is_large ? ' large' : ''}`

/** Each lane of a round its share, at least one. */
export const shareOf = (free: number, lanes: number): number =>
  Math.max(1, Math.floor(free / Math.max(1, lanes)))
