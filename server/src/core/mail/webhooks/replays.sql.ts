import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'

export interface Replay {
  shard: number
  endpoint_id: number
  project_id: number
  /** Events up to this id were scanned. */
  after_id: string
  to_id: string
  only_undelivered: boolean
  /** Null if the endpoint was deleted. */
  is_active: boolean | null
  events: string[] | null
}

/** Locks the longest overdue replay. */
export async function lockDueReplay(tx: Tx): Promise<Replay | undefined> {
  const { rows } = await sql<Replay>`
    select replays.shard, replays.endpoint_id, replays.project_id, coalesce(replays.cursor, replays.from_id) as after_id,
           replays.to_id, replays.only_undelivered, endpoints.is_active, endpoints.events
      from mail.replays as replays
      left join control.endpoints as endpoints
        on endpoints.id = replays.endpoint_id and endpoints.project_id = replays.project_id
     where replays.due_at <= postern.now()
     order by replays.due_at limit 1
       for update of replays skip locked`.execute(tx)
  return rows[0]
}

/**
 * Scans the next events in the range and inserts deliveries for those that the endpoint currently subscribes
 * to or has been sent before (such as inbound mail from a route). `last` is the position where the next step
 * continues.
 */
export async function replayNext(
  tx: Tx,
  { shard, endpoint_id, project_id, after_id, to_id, only_undelivered, events }: Replay,
  scanLimit: number,
): Promise<{ scanned: number; inserted: number; last: string | null }> {
  const { rows } = await sql<{ scanned: number; inserted: number; last: string | null }>`
    with scanned as materialized (
      select id, type from mail.events
       where shard = ${shard} and project_id = ${project_id} and id > ${after_id}::uuid and id < ${to_id}::uuid
       order by id limit ${scanLimit}
    ), wanted as materialized (
      select scanned.id from scanned
       cross join lateral (
         select count(*) as attempts, count(*) filter (where outcome = 'delivered') as delivered
           from mail.delivery_attempts as attempts
          where attempts.shard = ${shard} and attempts.endpoint_id = ${endpoint_id} and attempts.event_id = scanned.id
       ) as before
       where scanned.type <> 'endpoint.test' and (scanned.type = any(${events}::text[]) or before.attempts > 0)
         and (not ${only_undelivered}::boolean or before.delivered = 0)
    ), inserted as (
      insert into mail.deliveries (endpoint_id, event_id, project_id, gives_up_at)
      select ${endpoint_id}, id, ${project_id}, postern.now() + interval '28 hours' from wanted order by id
      on conflict do nothing
      returning event_id
    ), woken as (
      insert into mail.wakes (endpoint_id, project_id)
      select ${endpoint_id}, ${project_id} where exists (select from inserted)
    )
    select (select count(*) from scanned)::int as scanned, (select count(*) from inserted)::int as inserted,
           (select id from scanned order by id desc limit 1) as last`.execute(tx)
  return rows[0] ?? { scanned: 0, inserted: 0, last: null }
}

export async function moveReplay(
  tx: Tx,
  { shard, endpoint_id }: Replay,
  cursor: string,
  pauseMs: number,
): Promise<void> {
  await sql`
    update mail.replays set cursor = ${cursor}::uuid, due_at = postern.now() + ${pauseMs} * interval '1 ms'
     where shard = ${shard} and endpoint_id = ${endpoint_id}`.execute(tx)
}

export async function deleteReplay(tx: Tx, { shard, endpoint_id }: Replay): Promise<void> {
  await tx
    .deleteFrom('mail.replays')
    .where('shard', '=', shard)
    .where('endpoint_id', '=', endpoint_id)
    .execute()
}

/** Returns false if a replay for this endpoint is already running. */
export async function insertReplay(
  tx: Tx,
  projectId: number,
  endpointId: number,
  { from, to, onlyUndelivered }: { from: Date; to: Date; onlyUndelivered: boolean },
): Promise<boolean> {
  const { rows } = await sql`
    insert into mail.replays (endpoint_id, project_id, from_id, to_id, only_undelivered)
    values (${endpointId}, ${projectId}, postern.uuid7_floor(${from}), postern.uuid7_floor(${to}), ${onlyUndelivered})
    on conflict (shard, endpoint_id) do nothing
    returning endpoint_id`.execute(tx)
  tx.hint('webhooks')
  return rows.length > 0
}
