import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

export interface OfProject {
  endpoint_id: number
  project_id: number
}

export interface EndpointHealth extends OfProject {
  last_success_at: Date | null
  failures: number
  /** As text, because a Date does not have microsecond precision. */
  read_at: string
}

/** Runs in the mail database. An endpoint without a queue has had no deliveries. */
export async function readHealth(tx: ReadTx, endpoints: readonly OfProject[]): Promise<EndpointHealth[]> {
  const { rows } = await sql<EndpointHealth>`
    select requested.endpoint_id, requested.project_id, queues.last_success_at, coalesce(queues.failures, 0) as failures,
           clock_timestamp()::text as read_at
      from unnest(${endpoints.map(({ endpoint_id }) => endpoint_id)}::bigint[],
                  ${endpoints.map(({ project_id }) => project_id)}::bigint[]) as requested (endpoint_id, project_id)
      left join mail.endpoint_queues as queues
        on queues.shard = postern.shard_of(requested.project_id) and queues.endpoint_id = requested.endpoint_id`.execute(
    tx,
  )
  return rows
}

/**
 * Returns the ids of the updated endpoints. Skips, without waiting, endpoints that are being edited, and also skips
 * endpoints with a newer state.
 */
export async function writeHealth(tx: Tx, health: readonly EndpointHealth[]): Promise<number[]> {
  const all = <Key extends keyof EndpointHealth>(key: Key) => health.map((one) => one[key])
  const { rows } = await sql<{ endpoint_id: number }>`
    with free as materialized (
      select id, project_id from control.endpoints where id = any(${all('endpoint_id')}::bigint[])
      for key share skip locked
    )
    insert into control.endpoint_stats as stats
      (endpoint_id, project_id, last_success_at, consecutive_failures, counted_at, updated_at)
    select latest.endpoint_id, latest.project_id, latest.last_success_at, latest.failures, latest.read_at, postern.now()
      from unnest(${all('endpoint_id')}::bigint[], ${all('project_id')}::bigint[],
                  ${all('last_success_at')}::timestamptz[], ${all('failures')}::int[],
                  ${all('read_at')}::timestamptz[])
        as latest (endpoint_id, project_id, last_success_at, failures, read_at)
      join free on free.id = latest.endpoint_id and free.project_id = latest.project_id
     order by latest.endpoint_id
    on conflict (endpoint_id) do update set
      last_success_at = excluded.last_success_at, consecutive_failures = excluded.consecutive_failures,
      counted_at = excluded.counted_at, updated_at = excluded.updated_at
      where stats.counted_at < excluded.counted_at
    returning stats.endpoint_id`.execute(tx)
  return rows.map(({ endpoint_id }) => endpoint_id)
}

export async function selectExisting(tx: ReadTx, endpoints: readonly OfProject[]): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select endpoints.id
      from unnest(${endpoints.map(({ endpoint_id }) => endpoint_id)}::bigint[],
                  ${endpoints.map(({ project_id }) => project_id)}::bigint[]) as requested (endpoint_id, project_id)
      join control.endpoints as endpoints
        on endpoints.id = requested.endpoint_id and endpoints.project_id = requested.project_id`.execute(tx)
  return rows.map(({ id }) => id)
}

export async function isThere(tx: ReadTx, projectId: number, id: number): Promise<boolean> {
  const { rows } = await sql`
    select from control.endpoints where project_id = ${projectId} and id = ${id}`.execute(tx)
  return rows.length > 0
}

/** False if the endpoint is deleted or locked by another transaction. */
export async function lockUnlessBusy(tx: Tx, projectId: number, id: number): Promise<boolean> {
  const { rows } = await sql`
    select from control.endpoints where project_id = ${projectId} and id = ${id}
    for no key update skip locked`.execute(tx)
  return rows.length > 0
}

/** Undefined if the endpoint is already disabled or has since been changed. */
export async function switchOff(
  tx: Tx,
  projectId: number,
  id: number,
  { since, reason }: { since: string; reason: string },
): Promise<{ name: string; url: string } | undefined> {
  const { rows } = await sql<{ name: string; url: string }>`
    update control.endpoints set
      is_active = false, disabled_reason = ${reason}, version = version + 1, updated_at = postern.now()
     where project_id = ${projectId} and id = ${id} and is_active and updated_at <= ${since}::timestamptz
    returning name, url`.execute(tx)
  return rows[0]
}
