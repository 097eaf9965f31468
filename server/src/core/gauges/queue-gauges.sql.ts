import { sql } from 'kysely'
import type { ReadTx } from '../../platform/db/db.ts'
import { isNotHeld, maySendNow } from '../control/projects/may-send.ts'
import { readyLanes } from '../mail/dispatch/ready-lanes.ts'

/** Beyond that a count says nothing more that matters: what is behind is told by its age. */
const countedAtMost = 10_000
/** As many as a worker's own look at the queue, which happens four times a second. */
const lanesAtMost = 10_000

/** The statements below wait for nobody, and nobody for them. */
export async function limitTime(tx: ReadTx, ms: number): Promise<void> {
  await sql`select set_config('statement_timeout', ${String(ms)}, true)`.execute(tx)
}

export interface MailStanding {
  ready: number
  leased: number
  deferred: number
  scheduled: number
  awaiting: number
  overdue_seconds: number | null
  lease_seconds: number | null
  proven_lag_seconds: number | null
  failing_lag_seconds: number | null
  parked: number
  wakes: number
  results_seconds: number | null
  outbox_seconds: number | null
}

const counted = (rows: ReturnType<typeof sql>) =>
  sql`(select count(*)::int from (${rows} limit ${sql.lit(countedAtMost)}) as few)`

const since = (moment: ReturnType<typeof sql>) => sql`extract(epoch from postern.now() - ${moment})::float8`

/** Each part enters an index, and reads the first row of it or a bounded number. */
export async function findMailStanding(tx: ReadTx, leaseSeconds: number): Promise<MailStanding> {
  const waiting = sql`from mail.dispatch where state in ('deferred', 'scheduled')`
  const queues = (standing: ReturnType<typeof sql>) =>
    sql`(select ${since(sql`min(due_at)`)} from mail.endpoint_queues where ${standing} and due_at <= postern.now())`
  const { rows } = await sql<MailStanding>`
    select ${counted(sql`select from mail.dispatch where state = 'ready'`)} as ready,
           ${counted(sql`select from mail.dispatch where state = 'leased'`)} as leased,
           ${counted(sql`select from mail.dispatch where state = 'awaiting'`)} as awaiting,
           (waiting.count - waiting.scheduled) as deferred, waiting.scheduled,
           (select ${since(sql`min(due_at)`)} ${waiting} and due_at <= postern.now()) as overdue_seconds,
           (select ${since(sql`min(leased_until)`)} + ${leaseSeconds} from mail.dispatch where state = 'leased')
             as lease_seconds,
           ${queues(sql`is_proven`)} as proven_lag_seconds,
           ${queues(sql`not is_proven`)} as failing_lag_seconds,
           ${counted(sql`select from mail.endpoint_queues where not is_proven and due_at > postern.now()`)} as parked,
           ${counted(sql`select from mail.fan_outs`)} + ${counted(sql`select from mail.wakes`)} as wakes,
           (select ${since(sql`min(due_at)`)} from mail.attempt_results where due_at <= postern.now()) as results_seconds,
           (select ${since(sql`created_at`)} from mail.outbox order by id limit 1) as outbox_seconds
      from (select count(*)::int, count(*) filter (where state = 'scheduled')::int as scheduled
              from (select state ${waiting} order by due_at limit ${sql.lit(countedAtMost)}) as few) as waiting`.execute(
    tx,
  )
  const [row] = rows
  if (!row) throw new Error('counts gave no row')
  return row
}

/** Since when mail has been ready that may be sent, by provider. The index is entered once for each lane. */
export async function findOldestReady(tx: ReadTx): Promise<{ provider: string; seconds: number }[]> {
  const { rows } = await sql<{ provider: string; seconds: number }>`
    with recursive ${readyLanes}
    select lane.provider, ${since(sql`min(lane.due_at)`)} as seconds
      from (select * from lane limit ${sql.lit(lanesAtMost)}) as lane
      join control.projects as projects on projects.id = lane.project_id
     where ${maySendNow} and ${isNotHeld}
     group by lane.provider`.execute(tx)
  return rows
}

export interface ControlStanding {
  uncovered_seconds: number | null
  outbox_seconds: number | null
}

/**
 * A row that was dated before the last checkpoint and committed after it is not seen here; the next row of its kind is.
 */
export async function findControlStanding(tx: ReadTx): Promise<ControlStanding> {
  const { rows } = await sql<ControlStanding>`
    select (select ${since(sql`at`)} from control.audit
             where at > coalesce((select at from control.audit_checkpoints order by id desc limit 1), '-infinity')
             order by at, id limit 1) as uncovered_seconds,
           (select ${since(sql`created_at`)} from control.outbox order by id limit 1) as outbox_seconds`.execute(
    tx,
  )
  return rows[0] ?? { uncovered_seconds: null, outbox_seconds: null }
}
