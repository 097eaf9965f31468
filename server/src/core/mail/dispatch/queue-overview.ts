import type { Db } from '../../../platform/db/db.ts'
import { type DispatchHold, listDispatchHolds } from '../../control/holds/dispatch-holds.ts'
import { countCap } from '../../shared/counts.ts'
import {
  countHandedOver,
  countStates,
  type LaneRow,
  listHandedOver,
  listLanes,
} from './queue-overview.sql.ts'

/** The queue as an operator sees it at the shell: everything that is still to be handed over, and what waits for what. */
export interface QueueOverview {
  brakes: DispatchHold[]
  states: { state: string; mails: number; oldest_due_at: string }[]
  /** Those with most mail first, up to a number. */
  lanes: LaneOverview[]
}

export interface LaneOverview
  extends Omit<LaneRow, 'oldest_ready_at' | 'is_locked' | 'is_held' | 'subscription'> {
  oldest_ready_at: string | null
  /** Why nothing of it is claimed; empty when it has its turn. */
  waits_for: ('brake' | 'lock' | 'hold' | 'subscription')[]
}

/** Of one project, or of all. */
export const overviewOf = (
  db: Db,
  projectId: number | undefined,
  lanesAtMost: number,
): Promise<QueueOverview> =>
  db.read(async (tx) => {
    const brakes = await listDispatchHolds(tx)
    const states = await countStates(tx, projectId)
    const lanes = await listLanes(tx, projectId, lanesAtMost)
    return {
      brakes,
      states: states.map(({ oldest_due_at, ...row }) => ({
        ...row,
        oldest_due_at: oldest_due_at.toISOString(),
      })),
      lanes: lanes.map((row) => laneOf(row, brakes)),
    }
  })

function laneOf(
  { is_locked, is_held, subscription, oldest_ready_at, ...row }: LaneRow,
  brakes: DispatchHold[],
): LaneOverview {
  const isBraked = brakes.some(({ scope }) => scope === 'all' || scope === row.provider)
  return {
    ...row,
    oldest_ready_at: oldest_ready_at?.toISOString() ?? null,
    waits_for: [
      ...(isBraked ? (['brake'] as const) : []),
      ...(is_locked ? (['lock'] as const) : []),
      ...(is_held ? (['hold'] as const) : []),
      ...(subscription === 'canceled' || subscription === 'paused' ? (['subscription'] as const) : []),
    ],
  }
}

export interface HandedOver {
  /** Counted up to `countCap` + 1. */
  count: number
  /** The newest first. */
  mails: {
    queue_id: string
    host: string | null
    project_id: number
    message_id: string
    recipient_no: number
    handed_over_at: string
  }[]
}

/** An MTA keeps mail for five days, unless it is told otherwise. */
export const handedOverDays = 5

/**
 * Mail that an MTA has and has not told the end of, under the names that the MTA gave it. Day by day, the newest first,
 * until enough are found: each day is a table of its own.
 */
export const handedOverOf = (db: Db, projectId: number | undefined, atMost: number): Promise<HandedOver> =>
  db.read(async (tx) => {
    const found: HandedOver = { count: 0, mails: [] }
    for (let daysAgo = 0; daysAgo <= handedOverDays && found.count <= countCap; daysAgo++) {
      const limit = countCap + 1 - found.count
      found.count += await countHandedOver(tx, projectId, { daysAgo, limit })
      const room = atMost - found.mails.length
      if (room === 0) continue
      const rows = await listHandedOver(tx, projectId, { daysAgo, limit: room })
      const shown = rows.map((row) => ({ ...row, handed_over_at: row.handed_over_at.toISOString() }))
      found.mails.push(...shown)
    }
    return found
  })
