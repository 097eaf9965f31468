import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import type { WeekOfMail } from './score.ts'

/** A project's counters in the mail database, all read at the same time. */
export interface Totals {
  project_id: number
  /** Lifetime totals. */
  bounced: number
  failed: number
  complained: number
  week: WeekOfMail
  /** As text, because a Date does not have microsecond precision. */
  read_at: string
}

/** `week` is today and the previous six days, in UTC. A project without counters has zeros. */
export async function totalsOf(tx: ReadTx, projectIds: readonly number[]): Promise<Totals[]> {
  const { rows } = await sql<Totals>`
    select id as project_id, bounced, failed, complained, week, clock_timestamp()::text as read_at
    from unnest(${projectIds}::bigint[]) as id cross join lateral (
      select coalesce(sum(bounced), 0)::bigint as bounced, coalesce(sum(failed), 0)::bigint as failed,
             coalesce(sum(complained), 0)::bigint as complained,
             json_build_object(
               'sent', coalesce(sum(sent) filter (where is_recent), 0),
               'delivered', coalesce(sum(delivered) filter (where is_recent), 0),
               'bounced', coalesce(sum(bounced) filter (where is_recent), 0),
               'failed', coalesce(sum(failed - failed_by_operator) filter (where is_recent), 0),
               'complained', coalesce(sum(complained) filter (where is_recent), 0)) as week
      from mail.daily_counters
      cross join lateral (select day > (postern.now() at time zone 'UTC')::date - 7 as is_recent) as age
      where shard = postern.shard_of(id) and project_id = id) as sums`.execute(tx)
  return rows
}

/** Restricted to this cell's shards: the counters of projects in other cells would be read as zero here. */
export async function selectDue(
  tx: ReadTx,
  atMost: number,
  shards: readonly number[] | undefined,
): Promise<number[]> {
  const { rows } = await sql<{ project_id: number }>`
    select project_id from control.project_stats where recount_at <= postern.now()
      ${shards === undefined ? sql`` : sql`and postern.shard_of(project_id) = any(${shards}::smallint[])`}
    order by recount_at limit ${atMost}`.execute(tx)
  return rows.map(({ project_id }) => project_id)
}

export interface ScoredTotals extends Totals {
  score: number
  recount: 'soon' | 'tomorrow' | 'never'
}

/**
 * Returns the ids of the updated projects. Skips, without waiting, projects that an administrator is editing, and also
 * skips projects with newer totals.
 *
 * Locks the project before its statistics, in the same order as an edit, because both also write the project's listing row.
 */
export async function writeStats(tx: Tx, totals: readonly ScoredTotals[]): Promise<number[]> {
  const all = <Key extends keyof ScoredTotals>(key: Key) => totals.map((one) => one[key])
  const { rows } = await sql<{ project_id: number }>`
    with free as materialized (
      select id from control.projects where id = any(${all('project_id')}::bigint[])
      for no key update skip locked
    )
    update control.project_stats as stats set
      bounced = latest.bounced, failed = latest.failed, complained = latest.complained, computed_score = latest.score,
      counted_at = latest.read_at, updated_at = postern.now(),
      recount_at = case latest.recount
        when 'soon' then postern.now() + interval '1 minute'
        when 'tomorrow' then date_trunc('day', postern.now(), 'UTC') + interval '1 day'
      end
    from unnest(${all('project_id')}::bigint[], ${all('bounced')}::bigint[], ${all('failed')}::bigint[],
                ${all('complained')}::bigint[], ${all('score')}::smallint[], ${all('read_at')}::timestamptz[],
                ${all('recount')}::text[])
      as latest (project_id, bounced, failed, complained, score, read_at, recount)
    join free on free.id = latest.project_id
    where stats.project_id = latest.project_id and stats.counted_at < latest.read_at
    returning stats.project_id`.execute(tx)
  return rows.map(({ project_id }) => project_id)
}

export async function selectKnown(tx: ReadTx, projectIds: readonly number[]): Promise<number[]> {
  const { rows } = await sql<{ project_id: number }>`
    select project_id from control.project_stats where project_id = any(${projectIds}::bigint[])`.execute(tx)
  return rows.map(({ project_id }) => project_id)
}
