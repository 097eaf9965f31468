import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import { daysOf } from '../../../platform/ids.ts'
import type { RecipientStatus } from '../messages/wire.ts'

/** Lookups of mail across all projects of a cell. Each reads a bounded number of rows by an index. */

export interface TracedRow {
  message_id: string
  project_id: number
  /** Null if the reference does not name one of several recipients. */
  recipient_no: number | null
  address: string | null
  status: RecipientStatus | null
  created_at: Date
}

export interface RecipientKey {
  shard: number
  messageId: string
  recipientNo: number
}

/** The limit forces one index lookup per key. */
const recipientOf = (key: string) => sql`
  cross join lateral (
    select shard, message_id, project_id, recipient_no, address, status from mail.recipients
     where shard = ${sql.ref(`${key}.shard`)} and message_id = ${sql.ref(`${key}.message_id`)}
       and recipient_no = ${sql.ref(`${key}.recipient_no`)} limit 1) as recipient
  cross join lateral (
    select created_at from mail.messages
     where shard = recipient.shard and id = recipient.message_id limit 1) as message`

const columns = sql`
  recipient.message_id, recipient.project_id, recipient.recipient_no, recipient.address, recipient.status,
  message.created_at`

export async function findRecipients(tx: ReadTx, keys: readonly RecipientKey[]): Promise<TracedRow[]> {
  if (keys.length === 0) return []
  const { rows } = await sql<TracedRow>`
    select ${columns}
      from unnest(${keys.map(({ shard }) => shard)}::smallint[], ${keys.map(({ messageId }) => messageId)}::uuid[],
                  ${keys.map(({ recipientNo }) => recipientNo)}::smallint[]) as key (shard, message_id, recipient_no)
      ${recipientOf('key')}`.execute(tx)
  return rows
}

/**
 * Finds a message by its id alone. The id determines the day's partition, and the message is in one of the cell's shards: one
 * index lookup for each. An index on the id alone would cost every accepted message more.
 */
export async function findMessage(
  tx: ReadTx,
  id: string,
  recipientNo: number | null,
  shards: readonly number[],
): Promise<TracedRow[]> {
  const { first, last } = daysOf([id])
  const { rows } = await sql<TracedRow>`
    select message.id as message_id, message.project_id, recipient.recipient_no, recipient.address, recipient.status,
           message.created_at
      from (select shard, id, project_id, recipient_count, created_at from mail.messages
             where shard = any(${shards}::smallint[]) and id = ${id}::uuid
               and id between ${first}::uuid and ${last}::uuid limit 1) as message
      left join lateral (
        select recipient_no, address, status from mail.recipients
         where shard = message.shard and message_id = message.id
           and recipient_no = coalesce(${recipientNo}::smallint, case message.recipient_count when 1 then 0 end)
         limit 1) as recipient on true`.execute(tx)
  return rows
}

/** MTAs use a queue id again after some time. The newest messages are found. */
export async function findByQueueId(
  tx: ReadTx,
  queueIds: readonly string[],
  each: number,
): Promise<TracedRow[]> {
  if (queueIds.length === 0) return []
  const { rows } = await sql<TracedRow>`
    select ${columns}
      from unnest(${queueIds}::text[]) as wanted (queue_id)
      cross join lateral (
        select shard, message_id, recipient_no from mail.attempts
         where (queue_id collate "C") = wanted.queue_id and queue_id is not null
         order by message_id desc limit ${sql.lit(each)}) as attempt
      ${recipientOf('attempt')}`.execute(tx)
  return rows
}

export interface AddressOnDay {
  address: string
  from: Date
  to: Date
}

/** The newest messages to each address in its period. */
export async function findByAddress(
  tx: ReadTx,
  wanted: readonly AddressOnDay[],
  each: number,
): Promise<TracedRow[]> {
  if (wanted.length === 0) return []
  const { rows } = await sql<TracedRow>`
    select ${columns}
      from unnest(${wanted.map(({ address }) => address)}::text[], ${wanted.map(({ from }) => from)}::timestamptz[],
                  ${wanted.map(({ to }) => to)}::timestamptz[]) as wanted (address, from_time, to_time)
      cross join lateral (
        select shard, message_id, project_id, recipient_no, address, status from mail.recipients
         where lower(address) = lower(wanted.address)
           and message_id >= postern.uuid7_floor(wanted.from_time)
           and message_id < postern.uuid7_floor(wanted.to_time)
         order by message_id desc limit ${sql.lit(each)}) as recipient
      cross join lateral (
        select created_at from mail.messages
         where shard = recipient.shard and id = recipient.message_id limit 1) as message`.execute(tx)
  return rows
}
