import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'

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

/** Whether a replay of a time range is in progress. Runs in the mail database. */
export async function isReplaying(mail: ReadTx, projectId: number, endpointId: number): Promise<boolean> {
  const { rows } = await sql`
    select from mail.replays
     where shard = postern.shard_of(${projectId}) and endpoint_id = ${endpointId}`.execute(mail)
  return rows.length > 0
}

/** Whether a replay is still in the outbox. */
export async function isReplayAsked(tx: ReadTx, projectId: number, endpointId: number): Promise<boolean> {
  const { rows } = await sql`
    select from control.outbox
     where project_id = ${projectId} and topic = 'endpoint.replay' and payload ? 'from'
       and (payload ->> 'endpoint_id')::bigint = ${endpointId}`.execute(tx)
  return rows.length > 0
}
