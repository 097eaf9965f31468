import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import type { ProviderName } from '../../../providers/sending-identities.ts'
import { isNotHeld, maySend } from '../../control/projects/may-send.ts'
import { allowance } from './paces.ts'
import { readyLanes } from './ready-lanes.ts'

/** `none`: mail that was accepted with a test key and is not sent. */
export type DispatchProvider = ProviderName | 'none'

/**
 * A lane is the unit of fairness (round-robin): one project's mail to one provider. Large messages have
 * separate lanes.
 */
export interface LaneKey {
  shard: number
  project_id: number
  provider: DispatchProvider
  is_large: boolean
}

export interface LaneRow extends LaneKey {
  /** When the lane's oldest ready message became due. */
  oldest: Date
  /** Claims from the lane take part of the project's pace (paces.ts). */
  is_paced: boolean
}

/** Finds every lane with ready mail of a project that can currently send; other lanes would waste a share of each round. */
export async function findSendable(tx: ReadTx, limit: number): Promise<LaneRow[]> {
  const { rows } = await sql<LaneRow>`
    with recursive ${readyLanes}
    select lane.shard, lane.project_id, lane.provider, lane.is_large, lane.due_at as oldest,
           restriction.kind is not null and lane.provider <> 'none' as is_paced
      from lane
      join control.projects as projects on projects.id = lane.project_id and ${maySend} and ${isNotHeld}
      left join control.queue_restrictions as restriction on restriction.project_id = lane.project_id
      left join mail.paces as paces on paces.shard = lane.shard and paces.project_id = lane.project_id
     where restriction.kind is null or lane.provider = 'none' or ${allowance} > 0
     limit ${limit}`.execute(tx)
  return rows
}

/** Finds every lane whose oldest message has been ready for longer than `days`. */
export async function findOverdue(tx: ReadTx, days: number, limit: number): Promise<LaneKey[]> {
  const { rows } = await sql<LaneKey>`
    with recursive ${readyLanes}
    select lane.shard, lane.project_id, lane.provider, lane.is_large from lane
     where lane.due_at < postern.now() - ${days} * interval '1 day'
     limit ${limit}`.execute(tx)
  return rows
}
