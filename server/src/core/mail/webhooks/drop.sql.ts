import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'

/** Deletes the queue if it is empty and not leased. Returns false if it has deliveries. */
export async function deleteIdle(tx: Tx, projectId: number, endpointId: number): Promise<boolean> {
  const { rows } = await sql<{ is_idle: boolean }>`
    with waiting as materialized (
      select from mail.deliveries
       where shard = postern.shard_of(${projectId}) and endpoint_id = ${endpointId} limit 1
    ), idle as (
      delete from mail.endpoint_queues
       where shard = postern.shard_of(${projectId}) and endpoint_id = ${endpointId}
         and leased_until is null and not exists (select from waiting)
    )
    select not exists (select from waiting) as is_idle`.execute(tx)
  return rows[0]?.is_idle === true
}
