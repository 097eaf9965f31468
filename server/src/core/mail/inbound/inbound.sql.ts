import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

export interface InboundRow {
  id: string
  domainId: number
  routeId: number
  action: 'endpoint' | 'forward' | 'drop'
  endpointId: number | null
  messageId: string | null
  /** With action `forward`: the reason why no message was created. */
  notForwarded: 'dmarc' | null
  recipient: string
  bodyId: string | null
}

/** The data that all recipients of a message share. */
export interface InboundMail {
  projectId: number
  envelopeFrom: string
  fromHeader: string
  subject: string
  sizeBytes: number
  authentication: object
  remoteAddress: string
}

/** The database's time, used to generate ids, and the project's shard. */
export async function findMoment(tx: ReadTx, projectId: number): Promise<{ now: Date; shard: number }> {
  const { rows } = await sql<{ now: Date; shard: number }>`
    select postern.now() as now, postern.shard_of(${projectId}) as shard`.execute(tx)
  if (!rows[0]) throw new Error('the database returned no row')
  return rows[0]
}

export async function insertInbound(tx: Tx, mail: InboundMail, rows: readonly InboundRow[]): Promise<void> {
  const each = <T>(value: (row: InboundRow) => T): T[] => rows.map(value)
  await sql`
    insert into mail.inbound (id, project_id, domain_id, route_id, action, endpoint_id, message_id, not_forwarded, recipient,
                              body_id, envelope_from, from_header, subject, size_bytes, authentication, remote_address)
    select id, ${mail.projectId}, domain_id, route_id, action, endpoint_id, message_id, not_forwarded, recipient, body_id,
           ${mail.envelopeFrom}, ${mail.fromHeader}, ${mail.subject}, ${mail.sizeBytes},
           ${JSON.stringify(mail.authentication)}::jsonb, ${mail.remoteAddress}::inet
      from unnest(${each(({ id }) => id)}::uuid[], ${each(({ domainId }) => domainId)}::bigint[],
                  ${each(({ routeId }) => routeId)}::bigint[], ${each(({ action }) => action)}::text[],
                  ${each(({ endpointId }) => endpointId)}::bigint[], ${each(({ messageId }) => messageId)}::uuid[],
                  ${each(({ notForwarded }) => notForwarded)}::text[],
                  ${each(({ recipient }) => recipient)}::text[], ${each(({ bodyId }) => bodyId)}::uuid[])
        as row (id, domain_id, route_id, action, endpoint_id, message_id, not_forwarded, recipient, body_id)`.execute(
    tx,
  )
}

/** Inserted once for all recipients: the message as received, and the event data for endpoints. */
export async function insertBody(
  tx: Tx,
  {
    id,
    projectId,
    content,
    eventData,
  }: { id: string; projectId: number; content: Buffer; eventData: Buffer },
): Promise<void> {
  await sql`
    insert into mail.inbound_bodies (id, project_id, content, event_data)
    values (${id}, ${projectId}, ${content}, ${eventData})`.execute(tx)
}

/** Returns the project that owns the body, without reading the content. */
export async function findBodyOwner(tx: ReadTx, shard: number, id: string): Promise<number | undefined> {
  const { rows } = await sql<{ project_id: number }>`
    select project_id from mail.inbound_bodies where shard = ${shard} and id = ${id}`.execute(tx)
  return rows[0]?.project_id
}

export async function findBody(tx: ReadTx, shard: number, id: string): Promise<Buffer | undefined> {
  const { rows } = await sql<{ content: Buffer }>`
    select content from mail.inbound_bodies where shard = ${shard} and id = ${id}`.execute(tx)
  return rows[0]?.content
}
