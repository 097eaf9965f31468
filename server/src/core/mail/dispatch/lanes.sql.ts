import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import type { ProviderName } from '../../../providers/sending-identities.ts'
import { isNotHeld, maySendNow } from '../../control/projects/may-send.ts'
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
}

/**
 * Finds every lane with ready mail. `maySend` limits the result to projects that can currently send; other
 * projects' lanes would waste a share of each round. `readyForDays` limits the result to lanes whose oldest
 * message has been ready for longer than that.
 */
export async function findLanes(
  tx: ReadTx,
  { maySend, readyForDays, limit }: { maySend: boolean; readyForDays?: number; limit: number },
): Promise<LaneRow[]> {
  const { rows } = await sql<LaneRow>`
    with recursive ${readyLanes}
    select lane.shard, lane.project_id, lane.provider, lane.is_large, lane.due_at as oldest from lane
     ${maySend ? sql`join control.projects as projects on projects.id = lane.project_id and ${maySendNow} and ${isNotHeld}` : sql``}
     ${readyForDays === undefined ? sql`` : sql`where lane.due_at < postern.now() - ${readyForDays} * interval '1 day'`}
     limit ${limit}`.execute(tx)
  return rows
}
