import { sql } from 'kysely'
import type { ReadTx } from '../../platform/db/db.ts'
import { isNotHeld, maySendFreely } from '../control/projects/may-send.ts'
import { readyLanes } from '../mail/dispatch/ready-lanes.ts'

/** Larger counts carry no further information: the age of the oldest row shows how far behind the worker is. */
const countLimit = 10_000
/** The number of rows that a worker also reads, four times per second. */
const laneLimit = 10_000

export interface MailGauges {
  ready: number
  leased: number
  deferred: number
  scheduled: number
  awaiting: number
  overdue_seconds: number | null
  lease_seconds: number | null
  healthy_lag_seconds: number | null
  failing_lag_seconds: number | null
  parked: number
  wakes: number
  results_seconds: number | null
  outbox_seconds: number | null
}

const counted = (rows: ReturnType<typeof sql>) =>
  sql`(select count(*)::int from (${rows} limit ${sql.lit(countLimit)}) as few)`

const since = (time: ReturnType<typeof sql>) => sql`extract(epoch from postern.now() - ${time})::float8`

/** Each subquery reads the first row of an index, or a bounded number of rows. */
export async function readMailGauges(tx: ReadTx, leaseSeconds: number): Promise<MailGauges> {
  const waiting = sql`from mail.dispatch where state in ('deferred', 'scheduled')`
  const queues = (health: ReturnType<typeof sql>) =>
    sql`(select ${since(sql`min(due_at)`)} from mail.endpoint_queues where ${health} and due_at <= postern.now())`
  const { rows } = await sql<MailGauges>`
    select ${counted(sql`select from mail.dispatch where state = 'ready'`)} as ready,
           ${counted(sql`select from mail.dispatch where state = 'leased'`)} as leased,
           ${counted(sql`select from mail.dispatch where state = 'awaiting'`)} as awaiting,
           (waiting.count - waiting.scheduled) as deferred, waiting.scheduled,
           (select ${since(sql`min(due_at)`)} ${waiting} and due_at <= postern.now()) as overdue_seconds,
           (select ${since(sql`min(leased_until)`)} + ${leaseSeconds} from mail.dispatch where state = 'leased')
             as lease_seconds,
           ${queues(sql`is_healthy`)} as healthy_lag_seconds,
           ${queues(sql`not is_healthy`)} as failing_lag_seconds,
           ${counted(sql`select from mail.endpoint_queues where not is_healthy and due_at > postern.now()`)} as parked,
           ${counted(sql`select from mail.fan_outs`)} + ${counted(sql`select from mail.wakes`)} as wakes,
           (select ${since(sql`min(due_at)`)} from mail.attempt_results where due_at <= postern.now()) as results_seconds,
           (select ${since(sql`created_at`)} from mail.outbox order by id limit 1) as outbox_seconds
      from (select count(*)::int, count(*) filter (where state = 'scheduled')::int as scheduled
              from (select state ${waiting} order by due_at limit ${sql.lit(countLimit)}) as few) as waiting`.execute(
    tx,
  )
  const [row] = rows
  if (!row) throw new Error('the count returned no row')
  return row
}

/** The age of the oldest ready message that is allowed to be sent now, by provider; paced mail is expected to wait. One index probe per lane. */
export async function readOldestReady(tx: ReadTx): Promise<{ provider: string; seconds: number }[]> {
  const { rows } = await sql<{ provider: string; seconds: number }>`
    with recursive ${readyLanes}
    select lane.provider, ${since(sql`min(lane.due_at)`)} as seconds
      from (select * from lane limit ${sql.lit(laneLimit)}) as lane
      join control.projects as projects on projects.id = lane.project_id
     where ${maySendFreely} and ${isNotHeld}
     group by lane.provider`.execute(tx)
  return rows
}

export interface ControlGauges {
  last_checkpoint_at: Date | null
  uncovered_seconds: number | null
  outbox_seconds: number | null
  system_mail_seconds: number | null
  tripped_policies: number
  evaluation_lag_seconds: number | null
}

/** Misses an audit row that is dated before the last checkpoint but was committed after it. */
export async function readControlGauges(tx: ReadTx): Promise<ControlGauges> {
  const { rows } = await sql<ControlGauges>`
    select (select at from control.audit_checkpoints order by id desc limit 1) as last_checkpoint_at,
           (select ${since(sql`at`)} from control.audit
             where at > coalesce((select at from control.audit_checkpoints order by id desc limit 1), '-infinity')
             order by at, id limit 1) as uncovered_seconds,
           (select ${since(sql`created_at`)} from control.outbox order by id limit 1) as outbox_seconds,
           (select ${since(sql`min(created_at)`)} from control.system_mails where outcome is null) as system_mail_seconds,
           (select count(*)::int from control.policies where tripped_at is not null) as tripped_policies,
           (select ${since(sql`min(evaluated_until)`)} from control.policy_progress) as evaluation_lag_seconds`.execute(
    tx,
  )
  const [row] = rows
  if (!row) throw new Error('the database returned no row')
  return row
}
