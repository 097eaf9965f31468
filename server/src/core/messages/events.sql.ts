import { sql } from 'kysely'
import type { Tx } from '../../platform/db/db.ts'
import type { EventType } from '../events.ts'

export interface NewEvent {
  projectId: number
  /** A test is for the endpoint that is tested, and nobody subscribes to it. */
  type: EventType | 'endpoint.test'
  messageId: string | null
  recipientNo: number | null
  data: object
  /** Who is to have it besides those who subscribe to it: an endpoint of the project. */
  endpointId?: number
}

/**
 * Events of one message keep their order: ids of the same millisecond have none, so a second event is given the next
 * one. All have the time of the transaction.
 *
 * Each is on its way to its endpoints from the same commit on (migrations/000012_webhooks.sql).
 */
export async function insertEvents(tx: Tx, events: readonly NewEvent[]): Promise<void> {
  await sql`
    with told as materialized (
      select postern.uuid7(postern.now() + interval '1 ms' *
               (row_number() over (partition by message_id order by no) - 1)) as id,
             project_id, type, message_id, recipient_no, data, endpoint_id
      from unnest(${events.map(({ projectId }) => projectId)}::bigint[],
                  ${events.map(({ type }) => type)}::text[],
                  ${events.map(({ messageId }) => messageId)}::uuid[],
                  ${events.map(({ recipientNo }) => recipientNo)}::smallint[],
                  ${events.map(({ data }) => JSON.stringify(data))}::jsonb[],
                  ${events.map(({ endpointId }) => endpointId ?? null)}::bigint[])
        with ordinality as told (project_id, type, message_id, recipient_no, data, endpoint_id, no)
    ), event as (
      insert into mail.events (id, project_id, type, message_id, recipient_no, data)
      select id, project_id, type, message_id, recipient_no, data from told
    ), wanted as materialized (
      select told.id as event_id, endpoints.id as endpoint_id, told.project_id
        from told
        join control.endpoints as endpoints
          on endpoints.project_id = told.project_id and endpoints.is_active
         and (told.type = any(endpoints.events) or endpoints.id = told.endpoint_id)
    ), delivery as (
      insert into mail.deliveries (endpoint_id, event_id, project_id, gives_up_at)
      select endpoint_id, event_id, project_id, postern.now() + interval '28 hours' from wanted
    )
    insert into mail.wakes (endpoint_id, project_id) select distinct endpoint_id, project_id from wanted`.execute(
    tx,
  )
}
