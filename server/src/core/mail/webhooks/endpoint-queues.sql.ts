import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

/** An event is given up no earlier than 28 hours after it was written: older ones alone are looked at, by their ids. */
export const mayBeOld = sql`event_id < postern.uuid7_floor(postern.now() - interval '28 hours')`

/** An endpoint's queue, as whoever has leased it knows it. */
export interface Leased {
  shard: number
  endpoint_id: number
  project_id: number
  /** The fence. */
  lease: number
}

export interface ClaimedQueue extends Leased {
  /** The last time went well, or there was none. */
  is_proven: boolean
  /** Nothing was ever taken. */
  is_new: boolean
  failures: number
  /** It failed, and something has waited for so long that it may have to be given up. */
  has_old: boolean
}

export interface Work {
  has_fan_outs: boolean
  is_woken: boolean
  has_proven: boolean
  has_unproven: boolean
  has_replays: boolean
}

/** Whether there is anything to do, in one statement that takes nothing. */
export async function findWork(tx: ReadTx): Promise<Work> {
  const { rows } = await sql<Work>`
    select exists (select from mail.fan_outs) as has_fan_outs,
           exists (select from mail.wakes) as is_woken,
           exists (select from mail.endpoint_queues where is_proven and due_at <= postern.now()) as has_proven,
           exists (select from mail.endpoint_queues where not is_proven and due_at <= postern.now()) as has_unproven,
           exists (select from mail.replays where due_at <= postern.now()) as has_replays`.execute(tx)
  const [work] = rows
  if (!work) throw new Error('exists gave no row')
  return work
}

/**
 * What events have left behind, turned into queues that are due. One that rests goes on resting, and one that is leased is
 * left alone: whoever gives it back looks at what waits (`releaseQueues`), after having locked it as this does.
 */
export async function takeWakes(tx: Tx, atMost: number): Promise<number> {
  const { rows } = await sql<{ taken: number }>`
    with taken as materialized (
      delete from mail.wakes
       where id = any(array(select id from mail.wakes order by id limit ${atMost} for update skip locked))
      returning endpoint_id, project_id, shard
    ), woken as (
      insert into mail.endpoint_queues as queues (endpoint_id, project_id, due_at)
      select endpoint_id, project_id, postern.now()
        from (select distinct shard, endpoint_id, project_id from taken order by shard, endpoint_id) as one
      on conflict (shard, endpoint_id) do update
         set due_at = greatest(postern.now(), queues.rests_until)
       where queues.leased_until is null
         and (queues.due_at is null or queues.due_at > greatest(postern.now(), queues.rests_until))
    )
    select count(*)::int as taken from taken`.execute(tx)
  return rows[0]?.taken ?? 0
}

/** How many, and of which projects none. */
export interface Claim {
  most: number
  notOf: readonly number[]
}

/** Queues that are due, the longest due first, of those that failed and of others so many each; leased to the caller. */
export async function claimQueues(
  tx: Tx,
  { proven, unproven }: { proven: Claim; unproven: Claim },
  leaseSeconds: number,
): Promise<ClaimedQueue[]> {
  const due = (isProven: boolean, { most: limit, notOf }: Claim) => sql`array(
    select ctid from mail.endpoint_queues where is_proven = ${isProven} and due_at <= postern.now()
       and project_id <> all(${notOf}::bigint[])
     order by due_at limit ${limit} for update skip locked)`
  const { rows } = await sql<ClaimedQueue>`
    update mail.endpoint_queues as queues
       set lease = lease + 1, leased_until = postern.now() + ${leaseSeconds} * interval '1 second',
           due_at = postern.now() + ${leaseSeconds} * interval '1 second'
     where ctid = any(${due(true, proven)} || ${due(false, unproven)})
    returning shard, endpoint_id, project_id, lease, is_proven, last_success_at is null as is_new, failures,
              not is_proven and exists (
                select from mail.deliveries
                 where deliveries.shard = queues.shard and deliveries.endpoint_id = queues.endpoint_id
                   and ${mayBeOld}) as has_old`.execute(tx)
  return rows
}

/** Locks those queues that are still leased to whoever asks, and says which these are, by their place in the list. */
export async function lockLeased(tx: Tx, queues: readonly Leased[]): Promise<Set<number>> {
  const { rows } = await sql<{ place: number }>`
    select asked.place::int as place
      from unnest(${queues.map(({ shard }) => shard)}::smallint[],
                  ${queues.map(({ endpoint_id }) => endpoint_id)}::bigint[],
                  ${queues.map(({ lease }) => lease)}::bigint[]) with ordinality
             as asked (shard, endpoint_id, lease, place)
      join mail.endpoint_queues as queues
        on queues.shard = asked.shard and queues.endpoint_id = asked.endpoint_id and queues.lease = asked.lease
       and queues.leased_until is not null
     order by asked.shard, asked.endpoint_id
       for update of queues`.execute(tx)
  return new Set(rows.map(({ place }) => place - 1))
}

/** What became of a queue, told by whoever has leased it. */
export interface QueueNews extends Leased {
  /** Something was taken: whatever failed before is over. */
  hasTaken: boolean
  /** It failed, after whatever was taken: nothing was, or nothing any more. */
  hasFailed: boolean
  /** Given back, and left alone for so long: 0 for not at all. Undefined: kept. */
  restMs: number | undefined
}

export interface QueueState {
  shard: number
  endpoint_id: number
  project_id: number
  failures: number
  /** It has failed for so long. */
  failing_seconds: number | null
}

/** How often control is told of an endpoint whose standing is what it was. */
const tellEverySeconds = 60

/**
 * Of queues that the transaction has locked by `lockLeased`, in a statement before this one. That is what keeps wake-ups
 * from being lost: an event that was committed before the lock is seen here, and who takes the wake of a later one
 * waits for the lock and finds the queue given back.
 */
export async function updateQueues(tx: Tx, news: readonly QueueNews[]): Promise<QueueState[]> {
  const each = <T>(value: (one: QueueNews) => T): T[] => news.map(value)
  const { rows } = await sql<QueueState>`
    with news as materialized (
      select *, rest_ms is not null as is_released, postern.now() + rest_ms * interval '1 ms' as rested_at
        from unnest(${each(({ shard }) => shard)}::smallint[], ${each(({ endpoint_id }) => endpoint_id)}::bigint[],
                    ${each(({ hasTaken }) => hasTaken)}::boolean[], ${each(({ hasFailed }) => hasFailed)}::boolean[],
                    ${each(({ restMs }) => restMs ?? null)}::float8[])
          as news (shard, endpoint_id, has_taken, has_failed, rest_ms)
    ), before as materialized (
      select queues.shard, queues.endpoint_id, queues.failures, queues.told_at from news
        join mail.endpoint_queues as queues using (shard, endpoint_id)
    ), changed as (
      update mail.endpoint_queues as queues
         set failures = case when has_taken then 0 else queues.failures end + has_failed::int,
             failing_since = case when has_failed
                                  then case when has_taken then postern.now()
                                            else coalesce(failing_since, postern.now()) end
                                  when has_taken then null else failing_since end,
             last_success_at = case when has_taken then postern.now() else last_success_at end,
             leased_until = case when is_released then null else leased_until end,
             rests_until = case when is_released then rested_at else rests_until end,
             due_at = case when is_released
                           then (select greatest(deliveries.due_at, rested_at) from mail.deliveries
                                  where deliveries.shard = news.shard and deliveries.endpoint_id = news.endpoint_id
                                  order by deliveries.due_at limit 1)
                           else queues.due_at end,
             told_at = case when ${isToTell} then postern.now() else queues.told_at end
        from news join before using (shard, endpoint_id)
       where queues.shard = news.shard and queues.endpoint_id = news.endpoint_id
      returning queues.shard, queues.endpoint_id, queues.project_id, queues.failures,
                extract(epoch from postern.now() - queues.failing_since)::float8 as failing_seconds,
                queues.told_at = postern.now() and (has_taken or has_failed) as is_told
    ), told as (
      insert into mail.outbox (project_id, topic, payload)
      select project_id, 'endpoint.told', jsonb_build_object('endpoint_id', endpoint_id) from changed where is_told
    )
    select shard, endpoint_id, project_id, failures, failing_seconds from changed`.execute(tx)
  return rows
}

/** Something happened, and a streak begins or ends by it, or control has not been told of anything for a while. */
const isToTell = sql`(has_taken or has_failed) and (
  (has_failed and (before.failures = 0 or has_taken)) or (has_taken and before.failures > 0)
  or before.told_at is null or before.told_at <= postern.now() - ${sql.lit(tellEverySeconds)} * interval '1 second')`

/** The operator of the receiver, or five days, have said that it is to be switched off; control does it. */
export async function insertDisabled(
  tx: Tx,
  disabled: readonly { project_id: number; endpoint_id: number; reason: string }[],
): Promise<void> {
  await sql`
    insert into mail.outbox (project_id, topic, payload)
    select project_id, 'endpoint.disabled', jsonb_build_object('endpoint_id', endpoint_id, 'reason', reason)
      from unnest(${disabled.map(({ project_id }) => project_id)}::bigint[],
                  ${disabled.map(({ endpoint_id }) => endpoint_id)}::bigint[],
                  ${disabled.map(({ reason }) => reason)}::text[]) as disabled (project_id, endpoint_id, reason)`.execute(
    tx,
  )
}

/** Of an endpoint that is no more. */
export async function deleteQueue(tx: Tx, { shard, endpoint_id }: Leased): Promise<void> {
  for (const table of ['mail.replays', 'mail.endpoint_queues'] as const) {
    await tx.deleteFrom(table).where('shard', '=', shard).where('endpoint_id', '=', endpoint_id).execute()
  }
}
