import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'

/** Returns false if the event or the endpoint does not exist. */
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
  tx.hint('webhooks')
  return rows.length > 0
}

/** Ends an endpoint's backoff. */
export async function clearBackoff(tx: Tx, projectId: number, endpointId: number): Promise<void> {
  await sql`
    update mail.endpoint_queues set backoff_until = null
     where shard = postern.shard_of(${projectId}) and endpoint_id = ${endpointId}`.execute(tx)
}

/** Clears the failures and makes all deliveries due now, including those that were attempted before. */
export async function resetQueue(tx: Tx, projectId: number, endpointId: number): Promise<void> {
  // Locks the queue before its deliveries, in the same order as the code that records results.
  await sql`
    update mail.endpoint_queues set failures = 0, failing_since = null, backoff_until = null
     where shard = postern.shard_of(${projectId}) and endpoint_id = ${endpointId}`.execute(tx)
  await sql`
    update mail.deliveries set due_at = postern.now()
     where shard = postern.shard_of(${projectId}) and endpoint_id = ${endpointId} and due_at > postern.now()`.execute(
    tx,
  )
  await tx.insertInto('mail.wakes').values({ endpoint_id: endpointId, project_id: projectId }).execute()
  tx.hint('webhooks')
}
