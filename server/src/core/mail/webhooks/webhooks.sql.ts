import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'

/** False when there is no such event, or no such endpoint. */
export async function insertDelivery(
  tx: Tx,
  projectId: number,
  endpointId: number,
  eventId: string,
): Promise<boolean> {
  const { rows } = await sql`
    with delivery as (
      insert into mail.deliveries as deliveries (endpoint_id, event_id, project_id, gives_up_at)
      select endpoints.id, events.id, events.project_id, postern.now() + interval '28 hours'
        from mail.events as events
        join control.endpoints as endpoints on endpoints.project_id = events.project_id
       where events.shard = postern.shard_of(${projectId}) and events.id = ${eventId}::uuid
         and events.project_id = ${projectId} and endpoints.id = ${endpointId}
      on conflict (shard, endpoint_id, event_id) do update
         set attempt = 0, due_at = excluded.due_at, gives_up_at = excluded.gives_up_at
      returning endpoint_id, project_id
    ), wake as (
      insert into mail.wakes (endpoint_id, project_id) select endpoint_id, project_id from delivery
    )
    select from delivery`.execute(tx)
  return rows.length > 0
}

/** A person has asked for it: the endpoint rests no longer. */
export async function endRest(tx: Tx, projectId: number, endpointId: number): Promise<void> {
  await sql`
    update mail.endpoint_queues set rests_until = null
     where shard = postern.shard_of(${projectId}) and endpoint_id = ${endpointId}`.execute(tx)
}

/** Whatever failed before is forgotten; what waits is due at once, what was tried before included. */
export async function resetQueue(tx: Tx, projectId: number, endpointId: number): Promise<void> {
  // First the queue, as whoever writes down results does.
  await sql`
    update mail.endpoint_queues set failures = 0, failing_since = null, rests_until = null
     where shard = postern.shard_of(${projectId}) and endpoint_id = ${endpointId}`.execute(tx)
  await sql`
    update mail.deliveries set due_at = postern.now()
     where shard = postern.shard_of(${projectId}) and endpoint_id = ${endpointId} and due_at > postern.now()`.execute(
    tx,
  )
  await tx.insertInto('mail.wakes').values({ endpoint_id: endpointId, project_id: projectId }).execute()
}
