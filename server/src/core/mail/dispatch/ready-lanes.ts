import { sql } from 'kysely'

/**
 * `lane (shard, project_id, provider, is_large, due_at)` for a `with recursive`: each lane with ready mail,
 * and the due time of its oldest message. This is a loose index scan with one index probe per lane; `select
 * distinct` would read every row.
 */
export const readyLanes = sql`
  lane as (
    (select shard, project_id, provider, is_large, due_at from mail.dispatch where state = 'ready'
      order by shard, project_id, provider, is_large, due_at limit 1)
    union all
    select next.* from lane
     cross join lateral (
       select shard, project_id, provider, is_large, due_at from mail.dispatch
        where state = 'ready'
          and (shard, project_id, provider, is_large) > (lane.shard, lane.project_id, lane.provider, lane.is_large)
        order by shard, project_id, provider, is_large, due_at limit 1) as next
  )`
