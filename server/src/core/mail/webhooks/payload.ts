import type { Static } from 'typebox'
import type { ReadTx } from '../../../platform/db/db.ts'
import { type AttemptWithPayload, maxPayloadBytes } from '../../control/endpoints/wire.ts'
import type { StoredAttempt } from './attempts.sql.ts'
import { findEvents, findInboundStart, findNotes } from './deliveries.sql.ts'
import { bodyOf } from './signature.ts'

type Payload = Static<typeof AttemptWithPayload>['payload']

/** PostgreSQL's largest integer. Only the data of inbound messages is long, and it is stored apart. */
const anyLength = 2 ** 31 - 1

/**
 * The body of an attempt's request, built again from the event. It has the same bytes, because all of its parts are fixed
 * when the event is written. Null once a part is deleted by retention.
 */
export async function findPayload(tx: ReadTx, projectId: number, attempt: StoredAttempt): Promise<Payload> {
  const { shard, event_id } = attempt
  const event = (await findEvents(tx, [{ shard, id: event_id }], anyLength)).get(event_id)
  if (!event) return null
  const { message_id, inbound_body_id, data } = event
  const notes = message_id === null ? undefined : await findNotes(tx, [{ shard, id: message_id }])
  const about = notes?.get(message_id ?? '')
  const inbound =
    inbound_body_id === null
      ? undefined
      : await findInboundStart(tx, { shard, id: inbound_body_id }, maxPayloadBytes)
  if ((notes && !about) || (inbound_body_id !== null && !inbound)) return null
  const { type, created_at } = event
  const { tags, metadata } = about ?? {}
  const body = Buffer.from(
    bodyOf({
      ...{ type, created_at, project_id: projectId, message_id, tags, metadata },
      ...{ data: data ?? '{}', rest: inbound?.start },
    }),
  )
  const size_bytes = body.length + (inbound ? inbound.size - inbound.start.length : 0)
  const is_truncated = size_bytes > maxPayloadBytes
  return { text: is_truncated ? startOf(body) : body.toString(), size_bytes, is_truncated }
}

/** Without a character that the limit would split. */
const startOf = (body: Buffer): string =>
  new TextDecoder().decode(body.subarray(0, maxPayloadBytes), { stream: true })
