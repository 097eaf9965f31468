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

/** What a bucket must contain at least one of for its project to be evaluated in it. */
const countedBy = {
  bounce_rate: ['bounced'],
  complaint_rate: ['complained'],
  failure_rate: ['failed'],
  suppressed_rate: ['suppressed'],
  volume_spike: ['sent', 'rejected'],
  score: ['bounced', 'failed', 'complained'],
} as const satisfies Record<Signal, readonly string[]>

interface Expressions {
  counted: RawBuilder<unknown>
  /** What `counted` is compared with. */
  baseline: RawBuilder<unknown>
  value: RawBuilder<unknown>
}

/** Recipients that were sent to, or rejected without having been sent. Later reports do not add to it. */
const volume = sql`window_volume::float8`
const rate = (counted: string, of: RawBuilder<unknown> = volume): Expressions => ({
  counted: sql.ref(counted),
  baseline: of,
  value: sql`100 * ${sql.ref(counted)} / nullif(${of}, 0)`,
})

const expressions: Record<Signal, Expressions> = {
  bounce_rate: rate('window_bounced'),
  complaint_rate: rate('window_complained'),
  failure_rate: rate('window_failed'),
  suppressed_rate: rate('window_suppressed', sql`(${volume} + window_suppressed)`),
  volume_spike: {
    counted: volume,
    baseline: sql`usual_volume`,
    value: sql`${volume} / usual_volume`,
  },
  score: {
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
  greatest(1, earlier_volume::float8 * ${windowBuckets}::int
                / greatest(${windowBuckets}::int, bucket_no - ${windowBuckets}::int - first_bucket_no + 1))`

/** How far back the statement reads for the first bucket. */
const lookBackMinutes = ({ signal, window_minutes }: Pick<SignalQuestion, 'signal' | 'window_minutes'>) =>
  window_minutes + (signal === 'volume_spike' ? baselineBuckets * bucketMinutes : 0)

export async function findCandidates(tx: ReadTx, question: SignalQuestion): Promise<Candidate[]> {
  const { signal, window_minutes, threshold, minimum_volume, from, to, projects, followed_minutes } = question
  const { counted, baseline, value } = expressions[signal]
  const own = sql.join(
    countedBy[signal].map((kind) => sql.ref(kind)),
    sql` + `,
  )
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
    ), summed as (
      -- The windows of one project at a time: sorting the rows of all projects together takes longer.
      select id, score_offset, counter.* from project cross join lateral (
        select bucket_at, bucket_no, ${own} as own,
               sum(sent + rejected) over recent as window_volume,
               sum(sent) over recent as window_sent, sum(delivered) over recent as window_delivered,
               sum(bounced) over recent as window_bounced, sum(failed) over recent as window_failed,
               sum(complained) over recent as window_complained, sum(suppressed) over recent as window_suppressed,
               ${
                 isSpike
                   ? sql`coalesce(sum(sent + rejected + excluded_sent + excluded_rejected) over earlier, 0) as earlier_volume,
                         coalesce(first_value(bucket_no) over earlier, bucket_no) as first_bucket_no,`
                   : sql``
               }
               coalesce(sum(sent + excluded_sent) over later, 0) as sent_after
          from (select *, date_part('epoch', bucket_at)::bigint / ${bucketSeconds}::int as bucket_no,
                       -- Windows do not reach across an end.
                       width_bucket(bucket_at, ends) as period
                  from mail.sending_counters
                 where shard = postern.shard_of(project.id) and project_id = project.id
                   and bucket_at >= ${since} and bucket_at < ${to}) as counter
        window recent as (partition by period order by bucket_no
                          range between ${windowBuckets - 1}::bigint preceding and current row)
               ${
                 isSpike
                   ? sql`, earlier as (order by bucket_no
                           range between ${windowBuckets + baselineBuckets - 1}::bigint preceding
                                     and ${windowBuckets}::bigint preceding)`
                   : sql``
               }
               , later as (order by bucket_no
                           range between 1::bigint following and ${
                             followed_minutes === null
                               ? sql`unbounded`
                               : sql`${Math.max(1, Math.floor(followed_minutes / bucketMinutes))}::bigint`
                           } following)
        offset 0) as counter
    ), evaluated as (
      select *${isSpike ? sql`, ${usualVolume(windowBuckets)} as usual_volume` : sql``} from summed
       where bucket_at >= ${from}
    )
    select id as project_id, bucket_at + interval '5 minutes' as at, (${value})::float8 as value,
           (${counted})::bigint as counted, (${baseline})::float8 as baseline, sent_after::bigint
      from evaluated
     where own > 0 and ${minimum} >= ${minimum_volume}
       and ${value} ${signal === 'score' ? sql`<=` : sql`>=`} ${threshold}::float8
     order by bucket_at, id limit ${maxCandidates}`.execute(tx)
  return rows
}

/** What a project has in one bucket. */
export interface ActiveProject extends Record<(typeof countedBy)[Signal][number], number> {
  project_id: number
}

export const isCounted = (signal: Signal, active: ActiveProject): boolean =>
  countedBy[signal].some((kind) => active[kind] > 0)

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
