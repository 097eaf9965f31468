import { sql } from 'kysely'
import type { ReadTx } from '../../platform/db/db.ts'

export async function databaseTime(tx: ReadTx): Promise<Date> {
  const { rows } = await sql<{ now: Date }>`select postern.now() as now`.execute(tx)
  return rows[0]?.now ?? new Date(0)
}

export async function hasEvent(tx: ReadTx, projectId: number, eventId: string): Promise<boolean> {
  const { rows } = await sql`
    select from mail.events
     where shard = postern.shard_of(${projectId}) and id = ${eventId} and project_id = ${projectId}`.execute(
    tx,
  )
  return rows.length > 0
}

/**
 * Whether a stretch of time is under way, or asked for. One statement, so that it sees both of one moment: a row leaves
 * the outbox after the replay has begun.
 */
export async function isReplaying(tx: ReadTx, projectId: number, endpointId: number): Promise<boolean> {
  const { rows } = await sql<{ is_replaying: boolean }>`
    select exists (select from mail.replays
                    where shard = postern.shard_of(${projectId}) and endpoint_id = ${endpointId})
        or exists (select from control.outbox
                    where project_id = ${projectId} and topic = 'endpoint.replay' and payload ? 'from'
                      and (payload ->> 'endpoint_id')::bigint = ${endpointId}) as is_replaying`.execute(tx)
  return rows[0]?.is_replaying === true
}
