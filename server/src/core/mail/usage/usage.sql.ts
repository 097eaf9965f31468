import { type RawBuilder, sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import type { DailyLimits } from '../../control/caps/caps.ts'
import { type CountedKind, countedKinds } from '../counters/counters.ts'

interface Period {
  starts_on: string
  accepted: number
}

interface Periods {
  day: Period
  month: Period
  /** Today's limits. */
  daily: DailyLimits
}

interface Limits {
  day: number
  month: number
}

/** The current plan's limits. Undefined if the project does not exist. */
export async function findLimits(tx: ReadTx, projectId: number): Promise<Limits | undefined> {
  const { rows } = await sql<Limits>`
    select plans.max_mails_per_day as day, plans.max_mails_per_month as month
      from control.projects as projects
      join control.plans as plans on plans.id = coalesce(projects.admin_plan_id, projects.plan_id)
     where projects.id = ${projectId}`.execute(tx)
  return rows[0]
}

/** Messages accepted today and this month, both in UTC. A period without mail has no row. */
export async function findPeriods(tx: ReadTx, projectId: number): Promise<Periods> {
  const { rows } = await sql<
    Period & { period: string; stored_bytes: number; inbound_bytes: number; forwarded: number }
  >`
    select current.period, current.starts_on::text, coalesce(usage.accepted, 0) as accepted,
           coalesce(usage.stored_bytes, 0) as stored_bytes, coalesce(usage.inbound_bytes, 0) as inbound_bytes,
           coalesce(usage.forwarded, 0) as forwarded
      from (select period, date_trunc(period, postern.now() at time zone 'UTC')::date as starts_on
              from unnest(array['day', 'month']) as period) as current
      left join mail.usage as usage
        on usage.shard = postern.shard_of(${projectId}) and usage.project_id = ${projectId}
       and usage.period = current.period and usage.starts_on = current.starts_on`.execute(tx)
  const of = (wanted: string) => {
    const row = rows.find(({ period }) => period === wanted)
    if (!row) throw new Error('a period is missing')
    return row
  }
  const shown = ({ starts_on, accepted }: Period): Period => ({ starts_on, accepted })
  const [day, month] = [of('day'), of('month')]
  return {
    day: shown(day),
    month: shown(month),
    daily: {
      max_bytes_per_day: day.stored_bytes,
      max_inbound_bytes_per_day: day.inbound_bytes,
      max_forwards_per_day: day.forwarded,
    },
  }
}

type Outcomes = Record<CountedKind, number>

export interface DayRow extends Outcomes {
  day: string
  accepted: number
}

/** The current hour first. Includes what policies do not use. */
export async function findHours(
  tx: ReadTx,
  projectId: number,
  hours: number,
): Promise<(Outcomes & { starts_at: Date })[]> {
  const sums = countedKinds.map(
    (kind) =>
      sql`coalesce(sum(${sql.ref(kind)} + ${sql.ref(`excluded_${kind}`)}), 0)::bigint as ${sql.ref(kind)}`,
  )
  const { rows } = await sql<Outcomes & { starts_at: Date }>`
    select hours.starts_at, ${sql.join(sums)}
      from (select date_trunc('hour', postern.now(), 'UTC') - ago * interval '1 hour' as starts_at
              from generate_series(0, ${hours}::int - 1) as ago) as hours
      left join mail.sending_counters
        on shard = postern.shard_of(${projectId}) and project_id = ${projectId}
       and bucket_at >= hours.starts_at and bucket_at < hours.starts_at + interval '1 hour'
       -- For partition pruning.
       and bucket_at > postern.now() - ${hours + 1} * interval '1 hour'
     group by hours.starts_at order by hours.starts_at desc`.execute(tx)
  return rows
}

/** The last days, today first. */
export const findDays = (tx: ReadTx, projectId: number, days: number): Promise<DayRow[]> =>
  findDaysAmong(
    tx,
    projectId,
    sql`select (postern.now() at time zone 'UTC')::date - ago as day from generate_series(0, ${days}::int - 1) as ago`,
  )

/** The days that the range touches, the last one first. */
export const findDaysWithin = (
  tx: ReadTx,
  projectId: number,
  { from, to }: { from: Date; to: Date },
): Promise<DayRow[]> =>
  findDaysAmong(
    tx,
    projectId,
    sql`select day::date from generate_series(${from.toISOString().slice(0, 10)}::date,
                                              ${to.toISOString().slice(0, 10)}::date, interval '1 day') as day`,
  )

async function findDaysAmong(tx: ReadTx, projectId: number, days: RawBuilder<unknown>): Promise<DayRow[]> {
  const { rows } = await sql<DayRow>`
    select days.day::text, coalesce(usage.accepted, 0) as accepted, coalesce(daily.sent, 0) as sent,
           coalesce(daily.delivered, 0) as delivered, coalesce(daily.deferred, 0) as deferred,
           coalesce(daily.bounced, 0) as bounced, coalesce(daily.failed, 0) as failed,
           coalesce(daily.complained, 0) as complained, coalesce(daily.suppressed, 0) as suppressed
      from (${days}) as days
      left join mail.usage as usage
        on usage.shard = postern.shard_of(${projectId}) and usage.project_id = ${projectId}
       and usage.period = 'day' and usage.starts_on = days.day
      left join mail.daily_counters as daily
        on daily.shard = postern.shard_of(${projectId}) and daily.project_id = ${projectId} and daily.day = days.day
     order by days.day desc`.execute(tx)
  return rows
}
