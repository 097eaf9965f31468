import { sql } from 'kysely'
import { isNotHeld, maySendNow } from '../core/control/projects/may-send.ts'
import { readyLanes } from '../core/mail/dispatch/ready-lanes.ts'
import type { ReadTx } from '../platform/db/db.ts'
import { jobsSchema } from '../platform/jobs/queues.ts'

/** Each in seconds, null where nothing waits. */
export interface Delays {
  /** Mail that could be claimed. */
  ready: number | null
  /** Mail that was put off or scheduled, and is overdue. */
  overdue: number | null
  /** Leases that ran out and were not taken back. */
  leased: number | null
  webhooks: number | null
  control_outbox: number | null
  mail_outbox: number | null
  identities: number | null
  domains: number | null
}

/** Each is found by an index: of lanes the first row, of the rest the smallest time. */
export async function findDelays(tx: ReadTx): Promise<Delays> {
  const since = (time: ReturnType<typeof sql>) => sql`extract(epoch from postern.now() - ${time})::float8`
  const { rows } = await sql<Delays>`
    with recursive ${readyLanes}
    select
      (select ${since(sql`min(lane.due_at)`)} from lane
         join control.projects as projects on projects.id = lane.project_id where ${maySendNow} and ${isNotHeld}) as ready,
      (select ${since(sql`min(due_at)`)} from mail.dispatch
        where state in ('deferred', 'scheduled') and due_at < postern.now()) as overdue,
      (select ${since(sql`min(leased_until)`)} from mail.dispatch
        where state = 'leased' and leased_until < postern.now()) as leased,
      (select ${since(sql`min(greatest(due_at, leased_until))`)} from mail.endpoint_queues
        where due_at < postern.now() and coalesce(leased_until, due_at) < postern.now()) as webhooks,
      (select ${since(sql`min(created_at)`)} from control.outbox) as control_outbox,
      (select ${since(sql`min(created_at)`)} from mail.outbox) as mail_outbox,
      (select ${since(sql`min(settle_at)`)} from control.identities where settle_at < postern.now()) as identities,
      (select ${since(sql`min(next_check_at)`)} from control.domains where next_check_at < postern.now()) as domains
  `.execute(tx)
  const [row] = rows
  if (!row) throw new Error('a question gave no row')
  return row
}

/** Since the work of the minute was last done; null when it never was, or long ago. By the clock itself, as pg-boss. */
export async function sinceChores(tx: ReadTx): Promise<number | null> {
  const { rows } = await sql<{ seconds: number | null }>`
    select extract(epoch from now() - max(completed_on))::float8 as seconds
      from ${sql.table(`${jobsSchema}.job`)} where name = 'chores' and state = 'completed'`.execute(tx)
  return rows[0]?.seconds ?? null
}

/** Days from today on for which every table of mail has its partition, but for those made when needed. -1: not even today. */
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

export async function countHolds(tx: ReadTx): Promise<number> {
  const { rows } = await sql<{ held: number }>`select count(*)::int as held from control.queue_holds`.execute(
    tx,
  )
  return rows[0]?.held ?? 0
}
