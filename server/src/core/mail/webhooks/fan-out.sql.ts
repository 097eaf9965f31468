import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

export interface ProjectKey {
  shard: number
  project_id: number
}

/**
 * Projects with events to fan out, starting after `after` in key order. Uses a loose index scan with one
 * probe per project.
 */
export async function findProjects(
  tx: ReadTx,
  after: ProjectKey | undefined,
  limit: number,
): Promise<ProjectKey[]> {
  const { rows } = await sql<ProjectKey>`
    with recursive project as (
      (select shard, project_id from mail.fan_outs
        where (shard, project_id) > (${after?.shard ?? -1}::smallint, ${after?.project_id ?? 0}::bigint)
        order by shard, project_id limit 1)
      union all
      select next.* from project
       cross join lateral (
         select shard, project_id from mail.fan_outs
          where (shard, project_id) > (project.shard, project.project_id)
          order by shard, project_id limit 1) as next
    )
    select shard, project_id from project limit ${limit}`.execute(tx)
  return rows
}

/**
 * Returns false if another worker is already fanning out this project's events; concurrent workers would mix
 * up their order.
 */
export async function tryLockProject(tx: Tx, { project_id }: ProjectKey): Promise<boolean> {
  const { rows } = await sql<{ is_locked: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended('mail.fan_outs ' || ${project_id}::bigint, 0)) as is_locked`.execute(
    tx,
  )
  return rows[0]?.is_locked ?? false
}

/**
 * Inserts deliveries of the project's first events to its next endpoints: at most `events` times
 * `endpoints` rows. All events in a step resume after the same endpoint. Returns the number of events.
 */
export async function fanOutNext(
  tx: Tx,
  { shard, project_id }: ProjectKey,
  { events, endpoints }: { events: number; endpoints: number },
): Promise<number> {
  const ofProject = sql`shard = ${shard}::smallint and project_id = ${project_id}::bigint`
  const { rows } = await sql<{ events: number }>`
    with head as materialized (
      select after_endpoint_id from mail.fan_outs where ${ofProject} order by event_id limit 1
    ), taken as materialized (
      select event_id, type, endpoint_id from mail.fan_outs
       where ${ofProject} and after_endpoint_id = (select after_endpoint_id from head)
       order by event_id limit ${events}
    ), page as materialized (
      select id, events from control.endpoints
       where project_id = ${project_id} and is_active and id > (select after_endpoint_id from head)
       order by id limit ${endpoints}
    ), wanted as materialized (
      select taken.event_id, page.id as endpoint_id from taken
        join page on taken.type = any(page.events) or page.id = taken.endpoint_id
       order by taken.event_id
    ), delivery as (
      insert into mail.deliveries (endpoint_id, event_id, project_id, gives_up_at)
      select endpoint_id, event_id, ${project_id}, postern.now() + interval '28 hours' from wanted
      on conflict do nothing
    ), woken as (
      insert into mail.wakes (endpoint_id, project_id) select distinct endpoint_id, ${project_id}::bigint from wanted
    ), rest as materialized (
      select max(id) as after_endpoint_id from page having count(*) = ${endpoints}
    ), moved as (
      update mail.fan_outs set after_endpoint_id = rest.after_endpoint_id from rest
       where ${ofProject} and event_id = any(array(select event_id from taken))
    ), done as (
      delete from mail.fan_outs
       where ${ofProject} and event_id = any(array(select event_id from taken)) and not exists (select from rest)
    )
    select count(*)::int as events from taken`.execute(tx)
  return rows[0]?.events ?? 0
}
