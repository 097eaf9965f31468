import { type RawBuilder, sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'
import { daysOf } from '../../../platform/ids.ts'
import { isNotHeld, maySend, maySendFreely } from '../../control/projects/may-send.ts'
import type { Forwarded } from '../messages/draft.ts'
import type { DispatchProvider, LaneKey } from './lanes.sql.ts'
import { allowance, paceDebt, paceInterval } from './paces.ts'

export interface Claimed {
  message_id: string
  recipient_no: number
  project_id: number
  shard: number
  identity_id: number
  provider: DispatchProvider
  is_large: boolean
  recipient: string
  attempt: number
  first_attempt_at: Date
  due_at: Date
  /** Database time. */
  claimed_at: Date
}

export interface LaneToClaim extends LaneKey {
  /** No ready message in the lane is due before this time. */
  watermark: Date
  /** Maximum number of messages to claim from this lane. */
  most: number
}

const unnested = (lanes: readonly LaneToClaim[]) => sql`
  unnest(${lanes.map(({ shard }) => shard)}::smallint[], ${lanes.map(({ project_id }) => project_id)}::bigint[],
         ${lanes.map(({ provider }) => provider)}::text[], ${lanes.map(({ is_large }) => is_large)}::boolean[],
         ${lanes.map(({ watermark }) => watermark)}::timestamptz[], ${lanes.map(({ most }) => most)}::int[])
    with ordinality as lane (shard, project_id, provider, is_large, watermark, most, ordinal)`

/** The oldest ready messages of `lane`, locked. */
const readyInLane = sql`
  select dispatch.ctid from mail.dispatch as dispatch
   where dispatch.shard = lane.shard and dispatch.project_id = lane.project_id
     and dispatch.provider = lane.provider and dispatch.is_large = lane.is_large
     and dispatch.state = 'ready' and dispatch.due_at >= lane.watermark
   order by dispatch.due_at limit lane.most
     for update skip locked`

/**
 * Leases the messages whose ctid `ready` selects. Updating them by ctid leaves the planner only one possible plan. A ctid
 * stays valid while its row is locked.
 */
const lease = (ready: RawBuilder<unknown>, leaseSeconds: number) => sql`
  update mail.dispatch
     set state = 'leased', attempt = attempt + 1, leased_until = postern.now() + ${leaseSeconds} * interval '1 second',
         first_attempt_at = coalesce(first_attempt_at, postern.now())
   where ctid = any(array(${ready}))
  returning message_id, recipient_no, project_id, shard, identity_id, provider, is_large, recipient, attempt,
            first_attempt_at, due_at, postern.now() as claimed_at`

export interface ClaimLimits {
  limit: number
  leaseSeconds: number
}

/**
 * Leases up to `most` messages from each lane to the caller, oldest first, and at most `limit` in total.
 *
 * Skips lanes that the operator has put on hold, and lanes of projects that currently cannot send freely (locked, held,
 * paced, or without an active subscription). Mail that was accepted with a test key is not handed over, so it is not paced.
 */
export async function claimRows(
  tx: Tx,
  lanes: readonly LaneToClaim[],
  { limit, leaseSeconds }: ClaimLimits,
): Promise<Claimed[]> {
  const { rows } = await sql<Claimed>`
    with lane as materialized (
      select lane.* from ${unnested(lanes)}
        join control.projects as projects on projects.id = lane.project_id
       where (${maySendFreely} or (lane.provider = 'none' and ${maySend})) and ${isNotHeld}
    )
    ${lease(
      sql`
        select ready.ctid from (select * from lane order by ordinal) as lane
         cross join lateral (${readyInLane}) as ready limit ${limit}`,
      leaseSeconds,
    )}`.execute(tx)
  return rows
}

/**
 * The same for lanes of paced projects. Also takes what it claims from the project's pace. Of a project's lanes, the one with
 * the oldest mail comes first, so that none of them uses the whole pace. If another worker is claiming the project's messages
 * at this moment, the project is skipped.
 */
export async function claimPacedRows(
  tx: Tx,
  lanes: readonly LaneToClaim[],
  { limit, leaseSeconds }: ClaimLimits,
): Promise<Claimed[]> {
  await sql`
    insert into mail.paces (project_id)
    select distinct project_id from unnest(${lanes.map(({ project_id }) => project_id)}::bigint[]) as project_id
     order by project_id
        on conflict do nothing`.execute(tx)
  const { rows } = await sql<Claimed>`
    with lane as materialized (
      select lane.* from ${unnested(lanes)}
        join control.projects as projects on projects.id = lane.project_id
       where ${maySend} and ${isNotHeld} and lane.provider <> 'none'
    ), pace as materialized (
      select paces.shard, paces.project_id, restriction.pace_per_hour, ${paceInterval} as interval,
             ${paceDebt} as debt, ${allowance} as allowance
        from mail.paces as paces
        join control.queue_restrictions as restriction
          on restriction.project_id = paces.project_id and restriction.kind = 'pace'
       where (paces.shard, paces.project_id) in (select shard, project_id from lane)
         for update of paces skip locked
    ), claimed as (
      ${lease(
        sql`
          select ready.ctid
            from (select pace.*, (select min(ordinal) from lane where lane.project_id = pace.project_id) as turn
                    from pace order by turn) as pace
           cross join lateral (
             select ready.ctid
               from (select * from lane where lane.project_id = pace.project_id order by watermark) as lane
              cross join lateral (${readyInLane}) as ready
              limit greatest(pace.allowance, 0)) as ready
           limit ${limit}`,
        leaseSeconds,
      )}
    ), taken as (
      update mail.paces as paces
         set pace_per_hour = pace.pace_per_hour,
             next_at = postern.now() + pace.debt + counted.recipients * pace.interval
        from (select project_id, count(*) as recipients from claimed group by project_id) as counted
        join pace on pace.project_id = counted.project_id
       where paces.shard = pace.shard and paces.project_id = pace.project_id
    )
    select * from claimed`.execute(tx)
  return rows
}

/** A pace that is past allows a full burst, as a missing row does. */
export async function purgePaces(tx: OneStatement, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from mail.paces where ctid = any(array(
      select ctid from mail.paces where next_at < postern.now() - interval '1 hour' limit ${limit} for update skip locked))
    returning true`.execute(tx)
  return rows.length
}

export interface QueuedMessage {
  message_id: string
  is_test: boolean
  size_bytes: number
  created_at: Date
  format: 'json' | 'mime'
  /** Set only for forwarded mail. */
  forwarded: Forwarded | null
  /** Null if the message is not traced. */
  trace: Buffer | null
  /** Null for a large message, whose content is read separately when the message is sent. */
  content: Buffer | null
}

/**
 * Returns the messages for the claimed rows, each message once. If a body's partition was dropped in the
 * meantime, the body is in mail.waiting_bodies (see mail.drop_bodies), and a second statement reads it.
 */
export async function findQueuedMessages(
  tx: ReadTx,
  claimed: readonly Claimed[],
): Promise<Map<string, QueuedMessage>> {
  const messages = [...new Map(claimed.map((one) => [one.message_id, one])).values()]
  const found = await selectQueuedMessages(tx, messages, bodiesOfTheDay)
  const moved = messages.filter(({ message_id }) => !found.has(message_id))
  if (moved.length === 0) return found
  return new Map([...found, ...(await selectQueuedMessages(tx, moved, movedBodies))])
}

interface Days {
  first: string
  last: string
}

const bodiesOfTheDay = ({ first, last }: Days) => sql`
  select * from mail.bodies where shard = wanted.shard and message_id = wanted.id
     and message_id between ${first}::uuid and ${last}::uuid limit 1`

const movedBodies = () => sql`
  select * from mail.waiting_bodies where shard = wanted.shard and message_id = wanted.id limit 1`

/**
 * `limit 1` forces a separate index lookup for each key. Without statistics for a new day, PostgreSQL would
 * scan the whole partition.
 */
async function selectQueuedMessages(
  tx: ReadTx,
  messages: readonly Claimed[],
  bodies: (days: Days) => RawBuilder<unknown>,
): Promise<Map<string, QueuedMessage>> {
  const days = daysOf(messages.map(({ message_id }) => message_id))
  const { rows } = await sql<QueuedMessage>`
    select messages.id as message_id, messages.is_test, messages.size_bytes, messages.created_at, messages.forwarded,
           messages.trace, bodies.format, case when not wanted.is_large then bodies.content end as content
      from unnest(${messages.map(({ shard }) => shard)}::smallint[],
                  ${messages.map(({ message_id }) => message_id)}::uuid[],
                  ${messages.map(({ is_large }) => is_large)}::boolean[]) as wanted (shard, id, is_large)
      cross join lateral (
        select * from mail.messages where shard = wanted.shard and id = wanted.id
           and id between ${days.first}::uuid and ${days.last}::uuid limit 1) as messages
      cross join lateral (${bodies(days)}) as bodies`.execute(tx)
  return new Map(rows.map((row) => [row.message_id, row]))
}

export async function findContent(tx: ReadTx, { shard, message_id }: Claimed): Promise<Buffer> {
  const contentIn = (table: 'mail.bodies' | 'mail.waiting_bodies') =>
    tx
      .selectFrom(table)
      .select('content')
      .where('shard', '=', shard)
      .where('message_id', '=', message_id)
      .executeTakeFirst()
  const found = (await contentIn('mail.bodies')) ?? (await contentIn('mail.waiting_bodies'))
  if (!found) throw new Error(`message ${message_id} has no body`)
  return found.content
}
