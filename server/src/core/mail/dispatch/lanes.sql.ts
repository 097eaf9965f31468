import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import type { ProviderName } from '../../../providers/sending-identities.ts'
import { isNotHeld, maySendNow } from '../../control/projects/may-send.ts'
import { readyLanes } from './ready-lanes.ts'

/** Who takes mail. `none`: nobody, it is of a key for tests. */
export type Taker = ProviderName | 'none'

/** A lane is what one project sends through one provider, large mails apart: the unit of fairness (round-robin). */
export interface LaneKey {
  shard: number
  project_id: number
  provider: Taker
  is_large: boolean
}

export interface LaneRow extends LaneKey {
  /** Since when its first mail has been ready. */
  oldest: Date
}

/**
 * Every lane with something ready. With `isOpen`, those of projects that may send at this moment alone: others
 * would have their share of each round, and give nothing. With `readyForDays`, only those whose first mail has been ready
 * for longer.
 */
export async function findLanes(
  tx: ReadTx,
  { isOpen, readyForDays, limit }: { isOpen: boolean; readyForDays?: number; limit: number },
): Promise<LaneRow[]> {
  const { rows } = await sql<LaneRow>`
    with recursive ${readyLanes}
    select lane.shard, lane.project_id, lane.provider, lane.is_large, lane.due_at as oldest from lane
     ${isOpen ? sql`join control.projects as projects on projects.id = lane.project_id and ${maySendNow} and ${isNotHeld}` : sql``}
     ${readyForDays === undefined ? sql`` : sql`where lane.due_at < postern.now() - ${readyForDays} * interval '1 day'`}
     limit ${limit}`.execute(tx)
  return rows
}
