import type { Db } from '../../../platform/db/db.ts'
import { type DispatchHold, listDispatchHolds } from '../../control/holds/global-holds.ts'
import { countCap } from '../../shared/counts.ts'
import {
  countHandedOver,
  countStates,
  type LaneRow,
  listHandedOver,
  listLanes,
} from './queue-overview.sql.ts'

/**
 * The output of `postern queue`: all mail that has not been handed off to a provider, and why it is waiting.
 */
export interface QueueOverview {
  holds: DispatchHold[]
  states: { state: string; mails: number; oldest_due_at: string }[]
  /** Ordered by number of messages, descending; limited. */
  lanes: LaneOverview[]
}

export interface LaneOverview
  extends Omit<LaneRow, 'oldest_ready_at' | 'is_locked' | 'is_held' | 'is_paced' | 'subscription'> {
  oldest_ready_at: string | null
  /** The reasons why nothing in this lane is claimed, or only slowly; empty if its mail can be claimed. */
  waits_for: ('operator_hold' | 'project_lock' | 'project_hold' | 'project_pace' | 'subscription')[]
}

/** For one project, or for all projects. */
export const overviewOf = (
  db: Db,
  projectId: number | undefined,
  lanesAtMost: number,
): Promise<QueueOverview> =>
  db.read(async (tx) => {
    const holds = await listDispatchHolds(tx)
    const states = await countStates(tx, projectId)
    const lanes = await listLanes(tx, projectId, lanesAtMost)
    return {
      holds,
      states: states.map(({ oldest_due_at, ...row }) => ({
        ...row,
        oldest_due_at: oldest_due_at.toISOString(),
      })),
      lanes: lanes.map((row) => laneOf(row, holds)),
    }
  })

function laneOf(
  { is_locked, is_held, is_paced, subscription, oldest_ready_at, ...row }: LaneRow,
  holds: DispatchHold[],
): LaneOverview {
  const isHeldByOperator = holds.some(({ scope }) => scope === 'all' || scope === row.provider)
  return {
    ...row,
    oldest_ready_at: oldest_ready_at?.toISOString() ?? null,
    waits_for: [
      ...(isHeldByOperator ? (['operator_hold'] as const) : []),
      ...(is_locked ? (['project_lock'] as const) : []),
      ...(is_held ? (['project_hold'] as const) : []),
      ...(is_paced ? (['project_pace'] as const) : []),
      ...(subscription === 'canceled' || subscription === 'paused' ? (['subscription'] as const) : []),
    ],
  }
}

export interface HandedOver {
  /** Counted up to `countCap` + 1. */
  count: number
  /** Newest first. */
  mails: {
    queue_id: string
    host: string | null
    project_id: number
    message_id: string
    recipient_no: number
    handed_over_at: string
  }[]
}

/** Postfix keeps undelivered mail for five days by default. */
export const handedOverDays = 5

/**
 * Mail that an MTA has accepted but for which it has not sent a final report, with the MTA's queue ids. Each
 * day is a partition, so days are read one by one, newest first, until enough messages are found.
 */
export const handedOverOf = (db: Db, projectId: number | undefined, atMost: number): Promise<HandedOver> =>
  db.read(async (tx) => {
    const found: HandedOver = { count: 0, mails: [] }
    for (let daysAgo = 0; daysAgo <= handedOverDays && found.count <= countCap; daysAgo++) {
      const limit = countCap + 1 - found.count
      found.count += await countHandedOver(tx, projectId, { daysAgo, limit })
      const missing = atMost - found.mails.length
      if (missing === 0) continue
      const rows = await listHandedOver(tx, projectId, { daysAgo, limit: missing })
      const shown = rows.map((row) => ({ ...row, handed_over_at: row.handed_over_at.toISOString() }))
      found.mails.push(...shown)
    }
    return found
  })
