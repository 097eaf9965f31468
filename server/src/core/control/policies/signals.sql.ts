import { type RawBuilder, sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import { scoreSql } from '../reputation/score-expression.ts'
import { bucketMinutes } from './buckets.ts'
import type { Signal } from './wire.ts'

// Evaluates the signal of a policy in SQL, for many projects and buckets with one statement. The evaluation of new buckets
// and backtests use the same statement, so they agree.
//
// A window never reaches back beyond the end of the project's last pace, hold or lock.

export interface SignalQuestion {
  signal: Signal
  window_minutes: number
  threshold: number
  minimum_volume: number
  /** The buckets that are evaluated: from the first, up to and excluding the last. */
  from: Date
  to: Date
  /** At most a thousand. */
  projects: readonly EvaluatedProject[]
  /** For how long after a bucket `sent_after` counts. Null: until `to`. */
  followed_minutes: number | null
}

export interface EvaluatedProject {
  id: number
  score_offset: number
  /** When paces, holds and locks of the project ended, in any order. */
  ends: readonly Date[]
}

/** A project and a bucket in which the signal has reached the threshold. */
export interface Candidate {
  project_id: number
  /** The end of the bucket. */
  at: Date
  value: number
  counted: number
  baseline: number
  /** Recipients handed over after the bucket. */
  sent_after: number
}

/** More are not returned. A threshold that is far too low would otherwise return every bucket of every project. */
export const maxCandidates = 50_000

const bucketSeconds = bucketMinutes * 60
const bucketsPerDay = 86_400 / bucketSeconds
const baselineBuckets = 28 * bucketsPerDay

interface Expressions {
  /** What a bucket must contain for its project to be evaluated in it. */
  own: RawBuilder<unknown>
  counted: RawBuilder<unknown>
  /** What `counted` is compared with. */
  baseline: RawBuilder<unknown>
  value: RawBuilder<unknown>
}

/** Recipients that were sent to, or rejected without having been sent. Later reports do not add to it. */
const volume = sql`(window_sent + window_rejected)::float8`
const rate = (kind: string, counted: string, of: RawBuilder<unknown> = volume): Expressions => ({
  own: sql.ref(kind),
  counted: sql.ref(counted),
  baseline: of,
  value: sql`100 * ${sql.ref(counted)} / nullif(${of}, 0)`,
})

const expressions: Record<Signal, Expressions> = {
  bounce_rate: rate('bounced', 'window_bounced'),
  complaint_rate: rate('complained', 'window_complained'),
  failure_rate: rate('failed', 'window_failed'),
  suppressed_rate: rate('suppressed', 'window_suppressed', sql`(${volume} + window_suppressed)`),
  volume_spike: {
    own: sql`sent + rejected`,
    counted: volume,
    baseline: sql`usual_volume`,
    value: sql`${volume} / usual_volume`,
  },
  score: {
    own: sql`bounced + failed + complained`,
    counted: sql`window_bounced + window_failed + window_complained`,
    baseline: volume,
    value: sql`least(100, greatest(0, score_offset + ${scoreSql({
      sent: sql`window_sent`,
      delivered: sql`window_delivered`,
      bounced: sql`window_bounced`,
      failed: sql`window_failed`,
      complained: sql`window_complained`,
    })}))`,
  },
}

/**
 * The average volume of a window in the four weeks before the window, or since the project's first mail if that is later. At
 * least 1, so a project without earlier mail has a usual volume.
 */
const usualVolume = (windowBuckets: number) => sql`
  greatest(1, earlier_sent::float8 * ${windowBuckets}::int
                / greatest(${windowBuckets}::int, bucket_no - ${windowBuckets}::int - first_bucket_no + 1))`

/** How far back the statement reads for the first bucket. */
const lookBackMinutes = ({ signal, window_minutes }: Pick<SignalQuestion, 'signal' | 'window_minutes'>) =>
  window_minutes + (signal === 'volume_spike' ? baselineBuckets * bucketMinutes : 0)

/** For a backtest, which may read millions of rows. Applies to the rest of the transaction. */
export async function allowTime(tx: ReadTx): Promise<void> {
  await sql`set local statement_timeout = '2min'`.execute(tx)
}

export async function findCandidates(tx: ReadTx, question: SignalQuestion): Promise<Candidate[]> {
  const { signal, window_minutes, threshold, minimum_volume, from, to, projects, followed_minutes } = question
  const { own, counted, baseline, value } = expressions[signal]
  const windowBuckets = window_minutes / bucketMinutes
  const isSpike = signal === 'volume_spike'
  const ends = projects.flatMap(({ id, ends: times }) => times.map((at) => ({ id, at })))
  const since = new Date(from.getTime() - lookBackMinutes(question) * 60_000)
  const minimum = isSpike ? volume : baseline
  const { rows } = await sql<Candidate>`
    with project as materialized (
      select project.id, score_offset, coalesce(ends, '{}') as ends
        from unnest(${projects.map(({ id }) => id)}::bigint[],
                    ${projects.map(({ score_offset }) => score_offset)}::integer[]) as project (id, score_offset)
        left join (select id, array_agg(at order by at) as ends
                     from unnest(${ends.map(({ id }) => id)}::bigint[], ${ends.map(({ at }) => at)}::timestamptz[])
                       as ended (id, at) group by id) as ended using (id)
    ), counters as (
      select id, score_offset, extract(epoch from bucket_at)::bigint / ${bucketSeconds}::int as bucket_no,
             -- Windows do not reach across an end.
             width_bucket(bucket_at, ends) as period, counter.*
        from project cross join lateral (
          select bucket_at, sent, delivered, bounced, failed, complained, suppressed, rejected, excluded_sent
            from mail.sending_counters
           where shard = postern.shard_of(project.id) and project_id = project.id
             and bucket_at >= ${since} and bucket_at < ${to}
          offset 0) as counter
    ), summed as (
      select *, sum(sent) over recent as window_sent, sum(delivered) over recent as window_delivered,
             sum(bounced) over recent as window_bounced, sum(failed) over recent as window_failed,
             sum(complained) over recent as window_complained, sum(suppressed) over recent as window_suppressed,
             sum(rejected) over recent as window_rejected
             ${
               isSpike
                 ? sql`, coalesce(sum(sent + excluded_sent) over earlier, 0) as earlier_sent,
                         coalesce(first_value(bucket_no) over earlier, bucket_no) as first_bucket_no`
                 : sql``
             },
             coalesce(sum(sent + excluded_sent) over later, 0) as sent_after
        from counters
      window recent as (partition by id, period order by bucket_no
                        range between ${windowBuckets - 1}::bigint preceding and current row)
             ${
               isSpike
                 ? sql`, earlier as (partition by id order by bucket_no
                         range between ${windowBuckets + baselineBuckets - 1}::bigint preceding
                                   and ${windowBuckets}::bigint preceding)`
                 : sql``
             }
             , later as (partition by id order by bucket_no
                         range between 1::bigint following and ${
                           followed_minutes === null
                             ? sql`unbounded`
                             : sql`${Math.max(1, Math.floor(followed_minutes / bucketMinutes))}::bigint`
                         } following)
    ), evaluated as (
      select *${isSpike ? sql`, ${usualVolume(windowBuckets)} as usual_volume` : sql``} from summed
       where bucket_at >= ${from}
    )
    select id as project_id, bucket_at + interval '5 minutes' as at, (${value})::float8 as value,
           (${counted})::bigint as counted, (${baseline})::float8 as baseline, sent_after::bigint
      from evaluated
     where ${own} > 0 and ${minimum} >= ${minimum_volume}
       and ${value} ${signal === 'score' ? sql`<=` : sql`>=`} ${threshold}::float8
     order by bucket_at, id limit ${maxCandidates}`.execute(tx)
  return rows
}

/** What a project has in one bucket. */
export interface ActiveProject {
  project_id: number
  sent: number
  rejected: number
  bounced: number
  failed: number
  complained: number
  suppressed: number
}

/** Whether the bucket adds to what the signal counts. The same condition as in the statement above. */
export function isCounted(signal: Signal, active: ActiveProject): boolean {
  const { sent, rejected, bounced, failed, complained, suppressed } = active
  const counts: Record<Signal, number> = {
    ...{
      bounce_rate: bounced,
      complaint_rate: complained,
      failure_rate: failed,
      suppressed_rate: suppressed,
    },
    ...{ volume_spike: sent + rejected, score: bounced + failed + complained },
  }
  return counts[signal] > 0
}

/** The projects with counters in one bucket. */
export async function findActive(tx: ReadTx, bucket: Date): Promise<ActiveProject[]> {
  const { rows } = await sql<ActiveProject>`
    select project_id, sent, rejected, bounced, failed, complained, suppressed from mail.sending_counters
     where bucket_at = ${bucket} order by project_id`.execute(tx)
  return rows
}

/** The number of projects with counters in the hour that ends with the bucket. */
export async function countActive(tx: ReadTx, bucket: Date): Promise<number> {
  const { rows } = await sql<{ active: number }>`
    select count(distinct project_id)::int as active from mail.sending_counters
     where bucket_at > ${bucket}::timestamptz - interval '1 hour' and bucket_at <= ${bucket}`.execute(tx)
  return rows[0]?.active ?? 0
}
