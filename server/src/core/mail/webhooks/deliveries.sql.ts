import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { daysOf } from '../../../platform/ids.ts'
import { type Leased, mayBeOld } from './endpoint-queues.sql.ts'

/** A delivery run's position: deliveries are sent in this order, each once. */
export interface Cursor {
  /** As text, because a timestamp has microseconds and a Date does not. */
  due_at: string
  event_id: string
}

export interface Wanted extends Leased {
  after: Cursor | undefined
  most: number
}

export interface Due extends Cursor {
  /** Index in the list of wanted queues. */
  index: number
  /** Number of attempts so far. */
  attempt: number
  /** The time until the delivery is abandoned. */
  left_ms: number
}

/** The next due deliveries of several queues. */
export async function findDue(tx: ReadTx, wanted: readonly Wanted[]): Promise<Due[]> {
  const { rows } = await sql<Due>`
    select wanted.ordinal::int - 1 as index, due.event_id, due.attempt, due.due_at::text as due_at,
           (extract(epoch from due.gives_up_at - postern.now()) * 1000)::float8 as left_ms
      from unnest(${wanted.map(({ shard }) => shard)}::smallint[],
                  ${wanted.map(({ endpoint_id }) => endpoint_id)}::bigint[],
                  ${wanted.map(({ after }) => after?.due_at ?? '-infinity')}::timestamptz[],
                  ${wanted.map(({ after }) => after?.event_id ?? firstId)}::uuid[],
                  ${wanted.map(({ most }) => most)}::int[])
             with ordinality as wanted (shard, endpoint_id, after_due_at, after_id, most, ordinal)
     cross join lateral (
       select event_id, attempt, due_at, gives_up_at from mail.deliveries as deliveries
        where deliveries.shard = wanted.shard and deliveries.endpoint_id = wanted.endpoint_id
          and (deliveries.due_at, deliveries.event_id) > (wanted.after_due_at, wanted.after_id)
          and deliveries.due_at <= postern.now()
        order by deliveries.due_at, deliveries.event_id limit wanted.most) as due
     order by wanted.ordinal, due.due_at, due.event_id`.execute(tx)
  return rows
}

const firstId = '00000000-0000-0000-0000-000000000000'

export interface EventRow {
  id: string
  type: string
  message_id: string | null
  created_at: Date
  /** Null if it is longer than `maxBytes`. */
  data: string | null
  size: number
  /** The inbound message that contains the rest of the data. */
  inbound_body_id: string | null
}

type Key = { shard: number; id: string }

/**
 * PostgreSQL's text of an array, for elements that need no escaping, such as numbers and UUIDs. pg would escape
 * each element of a list.
 */
const arrayOf = (values: readonly (number | string)[]): string => `{${values.join(',')}}`
const shardsOf = (keys: readonly Key[]): string => arrayOf(keys.map(({ shard }) => shard))
const idsOf = (keys: readonly Key[]): string => arrayOf(keys.map(({ id }) => id))

/**
 * Events by key, without data longer than `maxBytes`. See core/mail/dispatch/claims.sql.ts for the use of
 * days and `limit 1`.
 */
export async function findEvents(
  tx: ReadTx,
  keys: readonly Key[],
  maxBytes: number,
): Promise<Map<string, EventRow>> {
  if (keys.length === 0) return new Map()
  const { first, last } = daysOf(keys.map(({ id }) => id))
  const { rows } = await sql<EventRow>`
    select events.id, events.type, events.message_id, events.created_at, events.inbound_body_id, measured.size,
           case when measured.size <= ${maxBytes} then measured.data end as data
      from unnest(${shardsOf(keys)}::smallint[], ${idsOf(keys)}::uuid[]) as key (shard, id)
     cross join lateral (
       select * from mail.events where shard = key.shard and id = key.id
          and id between ${first}::uuid and ${last}::uuid limit 1) as events
     cross join lateral (
       select text.data, octet_length(text.data) as size
         from (select events.data::text as data offset 0) as text offset 0) as measured`.execute(tx)
  return new Map(rows.map((row) => [row.id, row]))
}

/** The event data sizes of inbound messages, by key. */
export async function findInboundSizes(tx: ReadTx, keys: readonly Key[]): Promise<Map<string, number>> {
  const { first, last } = daysOf(keys.map(({ id }) => id))
  const { rows } = await sql<{ id: string; size: number }>`
    select bodies.id, bodies.size
      from (select distinct * from unnest(${keys.map(({ shard }) => shard)}::smallint[],
                                          ${keys.map(({ id }) => id)}::uuid[]) as key (shard, id)) as key
     cross join lateral (
       select id, octet_length(event_data) as size from mail.inbound_bodies where shard = key.shard and id = key.id
          and id between ${first}::uuid and ${last}::uuid limit 1) as bodies`.execute(tx)
  return new Map(rows.map(({ id, size }) => [id, size]))
}

export async function findInboundData(tx: ReadTx, { shard, id }: Key): Promise<Buffer | undefined> {
  const { first, last } = daysOf([id])
  const { rows } = await sql<{ event_data: Buffer | null }>`
    select event_data from mail.inbound_bodies where shard = ${shard} and id = ${id}
       and id between ${first}::uuid and ${last}::uuid`.execute(tx)
  return rows[0]?.event_data ?? undefined
}

/** The first bytes of an inbound message's event data, and its size. */
export async function findInboundStart(
  tx: ReadTx,
  { shard, id }: Key,
  bytes: number,
): Promise<{ start: Buffer; size: number } | undefined> {
  const { first, last } = daysOf([id])
  const { rows } = await sql<{ start: Buffer; size: number }>`
    select substring(event_data from 1 for ${bytes}) as start, octet_length(event_data) as size
      from mail.inbound_bodies
     where shard = ${shard} and id = ${id} and id between ${first}::uuid and ${last}::uuid
       and event_data is not null`.execute(tx)
  return rows[0]
}

export interface MessageNotes {
  id: string
  /** JSON */
  tags: string
  /** JSON */
  metadata: string
  trace: Buffer | null
}

/** The tags and metadata of the messages that events are about. */
export async function findNotes(tx: ReadTx, keys: readonly Key[]): Promise<Map<string, MessageNotes>> {
  if (keys.length === 0) return new Map()
  const { first, last } = daysOf(keys.map(({ id }) => id))
  const { rows } = await sql<MessageNotes>`
    select messages.id, array_to_json(messages.tags)::text as tags, messages.metadata::text as metadata, messages.trace
      from (select distinct * from unnest(${shardsOf(keys)}::smallint[], ${idsOf(keys)}::uuid[]) as key (shard, id)) as key
     cross join lateral (
       select id, tags, metadata, trace from mail.messages where shard = key.shard and id = key.id
          and id between ${first}::uuid and ${last}::uuid limit 1) as messages`.execute(tx)
  return new Map(rows.map((row) => [row.id, row]))
}

/** The result of one attempt, ready to be written. */
export interface Result {
  event_id: string
  event_type: string
  /** From 1. */
  attempt: number
  /** `skipped`: the event no longer exists, and no request was made. */
  outcome: 'delivered' | 'failed' | 'given_up' | 'gone' | 'skipped'
  status: number | null
  latencyMs: number
  response: string | null
  error: string | null
  /** Null if final. */
  retryMs: number | null
  /** According to the process's monotonic clock. */
  startedAt: number
}

/** The time of the statement. postern.now() returns the start of the transaction, which can be earlier. */
const thisMoment = sql`(clock_timestamp() + (postern.now() - now()))`

/** The transaction must have locked the queues. */
export async function writeResults(
  tx: Tx,
  results: readonly { queue: Leased; result: Result }[],
): Promise<void> {
  const each = <T>(value: (result: Result, queue: Leased) => T): T[] =>
    results.map(({ queue, result }) => value(result, queue))
  const numbers = (value: (result: Result, queue: Leased) => number | null): string =>
    arrayOf(each((result, queue) => value(result, queue) ?? 'NULL'))
  // From closed lists of names without quotes.
  const names = (value: (result: Result) => string): string => arrayOf(each((result) => `"${value(result)}"`))
  const now = performance.now()
  await sql`
    with result as materialized (
      select * from unnest(
        ${numbers((_, { shard }) => shard)}::smallint[], ${numbers((_, { endpoint_id }) => endpoint_id)}::bigint[],
        ${numbers((_, { project_id }) => project_id)}::bigint[], ${arrayOf(each(({ event_id }) => event_id))}::uuid[],
        ${names(({ event_type }) => event_type)}::text[], ${numbers(({ attempt }) => attempt)}::int[],
        ${names(({ outcome }) => outcome)}::text[], ${numbers(({ status }) => status)}::smallint[],
        ${numbers(({ latencyMs }) => latencyMs)}::int[], ${each(({ response }) => response)}::text[],
        ${each(({ error }) => error)}::text[], ${numbers(({ retryMs }) => retryMs)}::float8[],
        ${numbers(({ startedAt }) => now - startedAt)}::float8[])
        as result (shard, endpoint_id, project_id, event_id, event_type, attempt, outcome, status, latency_ms, response,
                   error, retry_ms, ago_ms)
    ), locked as materialized (
      select deliveries.ctid, result.retry_ms, result.attempt from result
        cross join lateral (
          select ctid from mail.deliveries as deliveries
           where deliveries.shard = result.shard and deliveries.endpoint_id = result.endpoint_id
             and deliveries.event_id = result.event_id
             for update) as deliveries
    ), deleted as (
      delete from mail.deliveries where ctid = any(array(select ctid from locked where retry_ms is null))
    ), rescheduled as (
      update mail.deliveries as deliveries
         set attempt = locked.attempt, due_at = postern.now() + locked.retry_ms * interval '1 ms'
        from locked
       where deliveries.ctid = locked.ctid and locked.retry_ms is not null
    )
    insert into mail.delivery_attempts (id, endpoint_id, event_id, project_id, event_type, attempt, outcome, status,
                                        latency_ms, response, error)
    select postern.uuid7(${thisMoment} - ago_ms * interval '1 ms'), endpoint_id, event_id, project_id, event_type,
           attempt, outcome, status, latency_ms, response, error
      from result where outcome <> 'skipped'`.execute(tx)
}

const expiredError = 'The event was not delivered within 28 hours and was given up.'

/**
 * Deletes a queue's expired deliveries and inserts a `given_up` attempt for each, without sending a request.
 */
export async function giveUpOld(tx: Tx, { shard, endpoint_id }: Leased, atMost: number): Promise<number> {
  const { rows } = await sql<{ given_up: number }>`
    with old as materialized (
      select event_id from mail.deliveries
       where shard = ${shard} and endpoint_id = ${endpoint_id}
         and ${mayBeOld} and gives_up_at <= postern.now()
       order by event_id limit ${atMost}
    ), gone as (
      delete from mail.deliveries
       where shard = ${shard} and endpoint_id = ${endpoint_id} and event_id = any(array(select event_id from old))
      returning event_id, project_id, attempt
    ), recorded as (
      insert into mail.delivery_attempts (id, endpoint_id, event_id, project_id, event_type, attempt, outcome,
                                          latency_ms, error)
      select postern.uuid7(postern.now()), ${endpoint_id}, gone.event_id, gone.project_id, events.type, gone.attempt,
             'given_up', 0, ${expiredError}
        from gone
       cross join lateral (
         select type from mail.events where shard = ${shard} and id = gone.event_id limit 1) as events
    )
    select count(*)::int as given_up from gone`.execute(tx)
  return rows[0]?.given_up ?? 0
}

/** Deletes up to `atMost` of an endpoint's deliveries. Returns the number deleted. */
export async function dropDeliveries(
  tx: Tx,
  { shard, endpoint_id }: Leased,
  atMost: number,
): Promise<number> {
  const { rows } = await sql<{ dropped: number }>`
    with dropped as (
      delete from mail.deliveries where ctid = any(array(
        select ctid from mail.deliveries where shard = ${shard} and endpoint_id = ${endpoint_id} limit ${atMost}))
      returning event_id
    )
    select count(*)::int as dropped from dropped`.execute(tx)
  return rows[0]?.dropped ?? 0
}
