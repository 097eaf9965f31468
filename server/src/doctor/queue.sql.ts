import { sql } from 'kysely'
import { isNotHeld, maySendFreely } from '../core/control/projects/may-send.ts'
import { readyLanes } from '../core/mail/dispatch/ready-lanes.ts'
import type { ReadTx } from '../platform/db/db.ts'
import { jobsSchema } from '../platform/jobs/queues.ts'

/** Each delay in seconds, or null if nothing is waiting. */
export interface Delays {
  /** Mail that a worker could claim. */
  ready: number | null
  /** Deferred or scheduled mail that is overdue. */
  overdue: number | null
  /** Leases that expired and were not reclaimed. */
  leased: number | null
  webhooks: number | null
  control_outbox: number | null
  mail_outbox: number | null
  identities: number | null
  domains: number | null
}

/**
 * Every value comes from an index: the first row of each lane for mail that is ready, and the earliest time for the
 * others.
 */
export async function findDelays(tx: ReadTx): Promise<Delays> {
  const since = (time: ReturnType<typeof sql>) => sql`extract(epoch from postern.now() - ${time})::float8`
  const { rows } = await sql<Delays>`
    with recursive ${readyLanes}
    select
      (select ${since(sql`min(lane.due_at)`)} from lane
         join control.projects as projects on projects.id = lane.project_id where ${maySendFreely} and ${isNotHeld}) as ready,
      (select ${since(sql`min(due_at)`)} from mail.dispatch
        where state in ('deferred', 'scheduled') and due_at < postern.now()) as overdue,
      (select ${since(sql`min(leased_until)`)} from mail.dispatch
        where state = 'leased' and leased_until < postern.now()) as leased,
      (select ${since(sql`min(greatest(due_at, leased_until))`)} from mail.endpoint_queues
        where due_at < postern.now() and coalesce(leased_until, due_at) < postern.now()) as webhooks,
      (select ${since(sql`min(created_at)`)} from control.outbox) as control_outbox,
      (select ${since(sql`min(created_at)`)} from mail.outbox) as mail_outbox,
      (select ${since(sql`min(reconcile_at)`)} from control.identities where reconcile_at < postern.now()) as identities,
      (select ${since(sql`min(next_check_at)`)} from control.domains where next_check_at < postern.now()) as domains
  `.execute(tx)
  const [row] = rows
  if (!row) throw new Error('the delay query returned no row')
  return row
}

/**
 * Seconds since the chores last completed; null if they have never completed, or not for a long time. Uses now(), as
 * pg-boss does.
 */
export async function sinceChores(tx: ReadTx): Promise<number | null> {
  const { rows } = await sql<{ seconds: number | null }>`
    select extract(epoch from now() - max(completed_on))::float8 as seconds
      from ${sql.table(`${jobsSchema}.job`)} where name = 'chores' and state = 'completed'`.execute(tx)
  return rows[0]?.seconds ?? null
}

/**
 * The number of days ahead for which every mail table has a partition, except tables whose partitions are created on
 * demand. -1 if even today's partition is missing.
 */
export async function partitionedDaysAhead(tx: ReadTx): Promise<number> {
  const { rows } = await sql<{ days: number }>`
    select coalesce(min(days), -1) as days from (
      select cut, (select count(*) from (
        select bool_and(to_regclass(format('mail.%I', cut || to_char(day, '_YYYYMMDD'))) is not null)
                 over (order by day) as is_there
          from generate_series((postern.now() at time zone 'UTC')::date,
                               (postern.now() at time zone 'UTC')::date + 30, interval '1 day') as day) as days
        where is_there)::int - 1 as days
        from (select relname::text as cut from pg_class
               where relkind = 'p' and relnamespace = 'mail'::regnamespace and relname <> 'waiting_bodies') as cuts) as counted`.execute(
    tx,
  )
  return rows[0]?.days ?? -1
}

export async function listHeldProjects(tx: ReadTx): Promise<{ id: number; name: string }[]> {
  const { rows } = await sql<{ id: number; name: string }>`
    select projects.id, projects.name from control.queue_restrictions as restriction
      join control.projects as projects on projects.id = restriction.project_id
     where restriction.kind = 'hold' order by projects.id`.execute(tx)
  return rows
}
