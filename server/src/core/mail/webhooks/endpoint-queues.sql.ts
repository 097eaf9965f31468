import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

/** An event is abandoned no earlier than 28 hours after it was written, so only older ids need to be read. */
export const mayBeOld = sql`event_id < postern.uuid7_floor(postern.now() - interval '28 hours')`

/** An endpoint's leased queue. */
export interface Leased {
  shard: number
  endpoint_id: number
  project_id: number
  /** The fencing token. */
  lease: number
}

export interface ClaimedQueue extends Leased {
  /** The last delivery succeeded, or there was none. */
  is_healthy: boolean
  /** No delivery has ever succeeded. */
  is_new: boolean
  failures: number
  /** The endpoint is failing and has deliveries that may have expired. */
  has_old: boolean
}

export interface Work {
  has_fan_outs: boolean
  is_woken: boolean
  has_healthy: boolean
  has_failing: boolean
  has_replays: boolean
  /** The time until a queue or a replay is due; null if there is none. */
  next_due_ms: number | null
}

/** Whether there is any work, and when queues and replays are due next. One statement, without locks. */
export async function findWork(tx: ReadTx): Promise<Work> {
  const firstDue = (isHealthy: boolean) => sql`(
    select due_at from mail.endpoint_queues where is_healthy = ${isHealthy} and due_at is not null
     order by due_at limit 1)`
  const { rows } = await sql<Work>`
    with due as materialized (
      select ${firstDue(true)} as healthy, ${firstDue(false)} as failing,
             (select due_at from mail.replays order by due_at limit 1) as replay
    )
    select exists (select from mail.fan_outs) as has_fan_outs,
           exists (select from mail.wakes) as is_woken,
           coalesce(healthy <= postern.now(), false) as has_healthy,
           coalesce(failing <= postern.now(), false) as has_failing,
           coalesce(replay <= postern.now(), false) as has_replays,
           (extract(epoch from least(healthy, failing, replay) - postern.now()) * 1000)::float8 as next_due_ms
      from due`.execute(tx)
  const [work] = rows
  if (!work) throw new Error('the database returned no row')
  return work
}

/**
 * Deletes wakes and makes their queues due. A queue in backoff becomes due when the backoff ends. A leased
 * queue is skipped: its release reads the deliveries (`updateQueues`) under the same row lock.
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
         set due_at = greatest(postern.now(), queues.backoff_until)
       where queues.leased_until is null
         and (queues.due_at is null or queues.due_at > greatest(postern.now(), queues.backoff_until))
    )
    select count(*)::int as taken from taken`.execute(tx)
  return rows[0]?.taken ?? 0
}

/** How many queues to claim, and which projects to exclude. */
export interface Claim {
  most: number
  notOf: readonly number[]
}

/** Leases due queues, longest overdue first, with separate limits for healthy and failing ones. */
export async function claimQueues(
  tx: Tx,
  { healthy, failing }: { healthy: Claim; failing: Claim },
  leaseSeconds: number,
): Promise<ClaimedQueue[]> {
  const due = (isHealthy: boolean, { most: limit, notOf }: Claim) => sql`array(
    select ctid from mail.endpoint_queues where is_healthy = ${isHealthy} and due_at <= postern.now()
       and project_id <> all(${notOf}::bigint[])
     order by due_at limit ${limit} for update skip locked)`
  const { rows } = await sql<ClaimedQueue>`
    update mail.endpoint_queues as queues
       set lease = lease + 1, leased_until = postern.now() + ${leaseSeconds} * interval '1 second',
           due_at = postern.now() + ${leaseSeconds} * interval '1 second'
     where ctid = any(${due(true, healthy)} || ${due(false, failing)})
    returning shard, endpoint_id, project_id, lease, is_healthy as is_healthy, last_success_at is null as is_new, failures,
              not is_healthy and exists (
                select from mail.deliveries
                 where deliveries.shard = queues.shard and deliveries.endpoint_id = queues.endpoint_id
                   and ${mayBeOld}) as has_old`.execute(tx)
  return rows
}

/** Locks the queues that are still leased to the caller. Returns their indexes in the list. */
export async function lockLeased(tx: Tx, queues: readonly Leased[]): Promise<Set<number>> {
  const { rows } = await sql<{ ordinal: number }>`
    select requested.ordinal::int as ordinal
      from unnest(${queues.map(({ shard }) => shard)}::smallint[],
                  ${queues.map(({ endpoint_id }) => endpoint_id)}::bigint[],
                  ${queues.map(({ lease }) => lease)}::bigint[]) with ordinality
             as requested (shard, endpoint_id, lease, ordinal)
      join mail.endpoint_queues as queues
        on queues.shard = requested.shard and queues.endpoint_id = requested.endpoint_id and queues.lease = requested.lease
       and queues.leased_until is not null
     order by requested.shard, requested.endpoint_id
       for update of queues`.execute(tx)
  return new Set(rows.map(({ ordinal }) => ordinal - 1))
}

/** A change to a queue by the worker that leases it. */
export interface QueueUpdate extends Leased {
  /** A delivery succeeded, which ends a streak of failures. */
  hasSucceeded: boolean
  /** The run ended with failures, after all successes. */
  hasFailed: boolean
  /** Releases the queue with this backoff; 0 for none. Undefined keeps the lease. */
  backoffMs: number | undefined
}

export interface QueueState {
  shard: number
  endpoint_id: number
  project_id: number
  failures: number
  /** How long the endpoint has been failing. */
  failing_seconds: number | null
}

/** How often `endpoint.stats_changed` is published for an endpoint whose health does not change. */
const statsEverySeconds = 60

/**
 * The transaction must have locked the queues with `lockLeased` in an earlier statement. This prevents lost
 * wakes: a delivery committed before the lock is read here; for a later one, `takeWakes` waits for the lock
 * and then finds the queue released.
 */
export async function updateQueues(tx: Tx, updates: readonly QueueUpdate[]): Promise<QueueState[]> {
  const each = <T>(value: (one: QueueUpdate) => T): T[] => updates.map(value)
  const { rows } = await sql<QueueState & { is_published: boolean }>`
    with updates as materialized (
      select *, backoff_ms is not null as is_released, postern.now() + backoff_ms * interval '1 ms' as retry_at
        from unnest(${each(({ shard }) => shard)}::smallint[], ${each(({ endpoint_id }) => endpoint_id)}::bigint[],
                    ${each(({ hasSucceeded }) => hasSucceeded)}::boolean[], ${each(({ hasFailed }) => hasFailed)}::boolean[],
                    ${each(({ backoffMs }) => backoffMs ?? null)}::float8[])
          as updates (shard, endpoint_id, has_succeeded, has_failed, backoff_ms)
    ), before as materialized (
      select queues.shard, queues.endpoint_id, queues.failures, queues.published_at from updates
        join mail.endpoint_queues as queues using (shard, endpoint_id)
    ), changed as (
      update mail.endpoint_queues as queues
         set failures = case when has_succeeded then 0 else queues.failures end + has_failed::int,
             failing_since = case when has_failed
                                  then case when has_succeeded then postern.now()
                                            else coalesce(failing_since, postern.now()) end
                                  when has_succeeded then null else failing_since end,
             last_success_at = case when has_succeeded then postern.now() else last_success_at end,
             leased_until = case when is_released then null else leased_until end,
             backoff_until = case when is_released then retry_at else backoff_until end,
             due_at = case when is_released
                           then (select greatest(deliveries.due_at, retry_at) from mail.deliveries
                                  where deliveries.shard = updates.shard and deliveries.endpoint_id = updates.endpoint_id
                                  order by deliveries.due_at limit 1)
                           else queues.due_at end,
             published_at = case when ${isStatsDue} then postern.now() else queues.published_at end
        from updates join before using (shard, endpoint_id)
       where queues.shard = updates.shard and queues.endpoint_id = updates.endpoint_id
      returning queues.shard, queues.endpoint_id, queues.project_id, queues.failures,
                extract(epoch from postern.now() - queues.failing_since)::float8 as failing_seconds,
                queues.published_at = postern.now() and (has_succeeded or has_failed) as is_published
    ), published as (
      insert into mail.outbox (project_id, topic, payload)
      select project_id, 'endpoint.stats_changed', jsonb_build_object('endpoint_id', endpoint_id) from changed where is_published
    )
    select shard, endpoint_id, project_id, failures, failing_seconds, is_published from changed`.execute(tx)
  if (rows.some(({ is_published }) => is_published)) tx.hint('outbox')
  return rows
}

/** Something changed, and either a streak of failures begins or ends, or the interval has passed. */
const isStatsDue = sql`(has_succeeded or has_failed) and (
  (has_failed and (before.failures = 0 or has_succeeded)) or (has_succeeded and before.failures > 0)
  or before.published_at is null or before.published_at <= postern.now() - ${sql.lit(statsEverySeconds)} * interval '1 second')`

/** Publishes `endpoint.disabled` to the control side for these endpoints. */
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
  tx.hint('outbox')
}

/** For a deleted endpoint. */
export async function deleteQueue(tx: Tx, { shard, endpoint_id }: Leased): Promise<void> {
  for (const table of ['mail.replays', 'mail.endpoint_queues'] as const) {
    await tx.deleteFrom(table).where('shard', '=', shard).where('endpoint_id', '=', endpoint_id).execute()
  }
}
