import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import type { ProviderName } from '../../../providers/sending-identities.ts'
import { isNotHeld, maySendNow } from '../../control/projects/may-send.ts'
import { readyLanes } from './ready-lanes.ts'

/** `none`: mail of a test key, which is handed to no provider. */
export type DispatchProvider = ProviderName | 'none'

/** A lane is what one project sends through one provider, large mails apart: the unit of fairness (round-robin). */
export interface LaneKey {
  shard: number
  project_id: number
  provider: DispatchProvider
  is_large: boolean
}

export interface LaneRow extends LaneKey {
  /** When its oldest ready mail became due. */
  oldest: Date
}

/**
 * Every lane with ready mail. With `maySend`, only lanes of projects that may send now: others would take a share of each
 * round and yield nothing. With `readyForDays`, only lanes whose oldest mail has been ready for longer.
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
