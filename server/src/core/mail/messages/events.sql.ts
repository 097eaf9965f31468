import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'
import type { EventType } from '../../shared/events.ts'

export interface NewEvent {
  projectId: number
  /** `endpoint.test` is sent only to the tested endpoint; endpoints cannot subscribe to it. */
  type: EventType | 'endpoint.test'
  messageId: string | null
  recipientNo: number | null
  /** Without `project_id`, `message_id`, `tags` and `metadata`, which are added when the event is read. */
  data: object
  /**
   * One of the project's endpoints, which receives the event even if it is not subscribed to the event's
   * type.
   */
  endpointId?: number
  /** The inbound message (mail.inbound_bodies) whose `event_data` is part of the event's data. */
  inboundBodyId?: string
}

/**
 * Preserves the order of a message's events: ids from the same millisecond are unordered, so a second event
 * gets the next millisecond. All events have the transaction's timestamp.
 *
 * An event adds at most two rows to the transaction, regardless of the number of endpoints. Deliveries are
 * inserted later (core/mail/webhooks/fan-out.ts).
 */
export async function insertEvents(tx: Tx, events: readonly NewEvent[]): Promise<void> {
  const { numAffectedRows: fanOuts } = await sql`
    with fresh as materialized (
      select postern.uuid7(postern.now() + interval '1 ms' *
               (row_number() over (partition by message_id order by no) - 1)) as id,
             project_id, type, message_id, recipient_no, data, endpoint_id, inbound_body_id
      from unnest(${events.map(({ projectId }) => projectId)}::bigint[],
                  ${events.map(({ type }) => type)}::text[],
                  ${events.map(({ messageId }) => messageId)}::uuid[],
                  ${events.map(({ recipientNo }) => recipientNo)}::smallint[],
                  ${events.map(({ data }) => JSON.stringify(data))}::jsonb[],
                  ${events.map(({ endpointId }) => endpointId ?? null)}::bigint[],
                  ${events.map(({ inboundBodyId }) => inboundBodyId ?? null)}::uuid[])
        with ordinality
          as fresh (project_id, type, message_id, recipient_no, data, endpoint_id, inbound_body_id, no)
    ), event as (
      insert into mail.events (id, project_id, type, message_id, recipient_no, data, inbound_body_id)
      select id, project_id, type, message_id, recipient_no, data, inbound_body_id from fresh
    )
    insert into mail.fan_outs (event_id, project_id, type, endpoint_id)
    select id, project_id, type, endpoint_id from fresh
     where project_id = any(array(
             select wanted.id from (select distinct project_id as id from fresh) as wanted
              where exists (select from control.endpoints as endpoints
                             where endpoints.project_id = wanted.id and endpoints.is_active)))`.execute(tx)
  if (fanOuts) tx.hint('webhooks')
}
