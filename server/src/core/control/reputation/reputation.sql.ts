import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import type { WeekOfMail } from './score.ts'

/** What the mail plane has counted of a project, as of one moment. */
export interface Totals {
  project_id: number
  /** Of all time. */
  bounced: number
  failed: number
  complained: number
  week: WeekOfMail
  /** As text: a moment has microseconds, and a Date has none. */
  read_at: string
}

/** Today and the six days before, by UTC. A project of which nothing was counted has zeros. */
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
               'failed', coalesce(sum(failed) filter (where is_recent), 0),
               'complained', coalesce(sum(complained) filter (where is_recent), 0)) as week
      from mail.daily_counters
      cross join lateral (select day > (postern.now() at time zone 'UTC')::date - 7 as is_recent) as age
      where shard = postern.shard_of(id) and project_id = id) as sums`.execute(tx)
  return rows
}

/** A cell knows nothing of the mail of others: figures of theirs, read there, would be zeros. */
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

export interface Judged extends Totals {
  score: number
  recount: 'soon' | 'tomorrow' | 'never'
}

/**
 * Which of them are now as told. Not among them: whose project an administrator is editing, who is not waited for, and
 * of whom something later was read.
 *
 * The project is locked before its figures, as whoever edits it does: both also write its row of the listing.
 */
export async function writeStats(tx: Tx, judged: readonly Judged[]): Promise<number[]> {
  const all = <Key extends keyof Judged>(key: Key) => judged.map((one) => one[key])
  const { rows } = await sql<{ project_id: number }>`
    with free as materialized (
      select id from control.projects where id = any(${all('project_id')}::bigint[])
      for no key update skip locked
    )
    update control.project_stats as stats set
      bounced = told.bounced, failed = told.failed, complained = told.complained, computed_score = told.score,
      counted_at = told.read_at, updated_at = postern.now(),
      recount_at = case told.recount
        when 'soon' then postern.now() + interval '1 minute'
        when 'tomorrow' then date_trunc('day', postern.now(), 'UTC') + interval '1 day'
      end
    from unnest(${all('project_id')}::bigint[], ${all('bounced')}::bigint[], ${all('failed')}::bigint[],
                ${all('complained')}::bigint[], ${all('score')}::smallint[], ${all('read_at')}::timestamptz[],
                ${all('recount')}::text[])
      as told (project_id, bounced, failed, complained, score, read_at, recount)
    join free on free.id = told.project_id
    where stats.project_id = told.project_id and stats.counted_at < told.read_at
    returning stats.project_id`.execute(tx)
  return rows.map(({ project_id }) => project_id)
}

export async function selectKnown(tx: ReadTx, projectIds: readonly number[]): Promise<number[]> {
  const { rows } = await sql<{ project_id: number }>`
    select project_id from control.project_stats where project_id = any(${projectIds}::bigint[])`.execute(tx)
  return rows.map(({ project_id }) => project_id)
}
