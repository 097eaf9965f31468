import { sql } from 'kysely'
import type { ReadTx } from '../../platform/db/db.ts'
import type { ProviderName } from '../../providers/mta-provider.ts'

/** A lane is what one project sends through one provider: the unit of fairness. */
export interface LaneKey {
  shard: number
  project_id: number
  provider: ProviderName
}

export interface LaneRow extends LaneKey {
  /** Since when its first mail has been ready. */
  oldest: Date
}

/**
 * Every lane with something ready, from a place on: the index is entered once for each, however much waits in it.
 * A plain `select distinct` would read every row.
 */
export async function findLanes(tx: ReadTx, limit: number): Promise<LaneRow[]> {
  const { rows } = await sql<LaneRow>`
    with recursive lane as (
      (select shard, project_id, provider, due_at from mail.dispatch where state = 'ready'
        order by shard, project_id, provider, due_at limit 1)
      union all
      select next.* from lane
       cross join lateral (
         select shard, project_id, provider, due_at from mail.dispatch
          where state = 'ready'
            and (shard, project_id, provider) > (lane.shard, lane.project_id, lane.provider)
          order by shard, project_id, provider, due_at limit 1) as next
    )
    select shard, project_id, provider, due_at as oldest from lane limit ${limit}`.execute(tx)
  return rows
}
