import { sql } from 'kysely'
import type { Tx } from '../../platform/db/db.ts'
import type { EventType } from '../events.ts'

export interface NewEvent {
  projectId: number
  type: EventType
  messageId: string | null
  recipientNo: number | null
  data: object
}

/**
 * Events of one message keep their order: ids of the same millisecond have none, so a second event is given the next
 * one. All have the time of the transaction.
 */
export async function insertEvents(tx: Tx, events: readonly NewEvent[]): Promise<void> {
  await sql`
    insert into mail.events (id, project_id, type, message_id, recipient_no, data)
    select postern.uuid7(postern.now() + interval '1 ms' *
             (row_number() over (partition by message_id order by no) - 1)),
           project_id, type, message_id, recipient_no, data
    from unnest(${events.map(({ projectId }) => projectId)}::bigint[],
                ${events.map(({ type }) => type)}::text[],
                ${events.map(({ messageId }) => messageId)}::uuid[],
                ${events.map(({ recipientNo }) => recipientNo)}::smallint[],
                ${events.map(({ data }) => JSON.stringify(data))}::jsonb[])
      with ordinality as told (project_id, type, message_id, recipient_no, data, no)`.execute(tx)
}
