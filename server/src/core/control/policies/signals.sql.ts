import { type RawBuilder, sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import { scoreSql } from '../reputation/score-expression.ts'
import type { Signal } from './wire.ts'

// Evaluates the signal of a policy in SQL, for many projects and buckets with one statement. The evaluation of new buckets
// and backtests use the same statement, so they agree.
//
// A window never reaches back beyond the end of the project's last intervention: what happened before has been answered.

export interface SignalQuestion {
  signal: Signal
  window_minutes: number
  threshold: number
  minimum_volume: number
  /** The buckets that are judged: from the first, up to and excluding the last. */
  from: Date
  to: Date
  /** At most a thousand. */
  projects: readonly JudgedProject[]
  /** For how long after a bucket `sent_after` counts. Null: until `to`. */
  followed_minutes: number | null
}

export interface JudgedProject {
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
  volume: number
  /** Recipients handed over after the bucket. */
  sent_after: number
}

const bucketSeconds = 300
const bucketsPerDay = 86_400 / bucketSeconds
const baselineBuckets = 28 * bucketsPerDay

interface Expressions {
  /** What a bucket must contain for its project to be judged in it. */
  own: RawBuilder<unknown>
  counted: RawBuilder<unknown>
  volume: RawBuilder<unknown>
  value: RawBuilder<unknown>
}

const volume = sql`greatest(window_sent, window_delivered + window_bounced + window_failed)::float8`
const rate = (kind: string, counted: string, of: RawBuilder<unknown> = volume): Expressions => ({
  own: sql.ref(kind),
  counted: sql.ref(counted),
  volume: of,
  value: sql`100 * ${sql.ref(counted)} / nullif(${of}, 0)`,
})

const expressions: Record<Signal, Expressions> = {
  bounce_rate: rate('bounced', 'window_bounced'),
  complaint_rate: rate('complained', 'window_complained'),
  failure_rate: rate('failed', 'window_failed'),
  suppressed_rate: rate('suppressed', 'window_suppressed', sql`(${volume} + window_suppressed)`),
  volume_spike: {
    own: sql`sent`,
    counted: volume,
    volume: sql`usual_volume`,
    value: sql`${volume} / usual_volume`,
  },
  score: {
    own: sql`bounced + failed + complained`,
    counted: sql`window_bounced + window_failed + window_complained`,
    volume,
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
  window_minutes + (signal === 'volume_spike' ? baselineBuckets * 5 : 0)

export async function findCandidates(tx: ReadTx, question: SignalQuestion): Promise<Candidate[]> {
  const { signal, window_minutes, threshold, minimum_volume, from, to, projects, followed_minutes } = question
  const { own, counted, volume: comparedWith, value } = expressions[signal]
  const windowBuckets = window_minutes / 5
  const isSpike = signal === 'volume_spike'
  const ends = projects.flatMap(({ id, ends: own }) => own.map((at) => ({ id, at })))
  const since = new Date(from.getTime() - lookBackMinutes(question) * 60_000)
  const minimum = isSpike ? volume : comparedWith
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
             -- Buckets between the same two ends are judged together.
             width_bucket(bucket_at, ends) as period, counter.*
        from project cross join lateral (
          select bucket_at, sent, delivered, bounced, failed, complained, suppressed, excluded_sent
            from mail.sending_counters
           where shard = postern.shard_of(project.id) and project_id = project.id
             and bucket_at >= ${since} and bucket_at < ${to}
          offset 0) as counter
    ), summed as (
      select *, sum(sent) over recent as window_sent, sum(delivered) over recent as window_delivered,
             sum(bounced) over recent as window_bounced, sum(failed) over recent as window_failed,
             sum(complained) over recent as window_complained, sum(suppressed) over recent as window_suppressed
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
                             : sql`${Math.max(1, Math.floor(followed_minutes / 5))}::bigint`
                         } following)
    ), judged as (
      select *${isSpike ? sql`, ${usualVolume(windowBuckets)} as usual_volume` : sql``} from summed
       where bucket_at >= ${from}
    )
    select id as project_id, bucket_at + interval '5 minutes' as at, (${value})::float8 as value,
           (${counted})::bigint as counted, (${comparedWith})::float8 as volume, sent_after::bigint
      from judged
     where ${own} > 0 and ${minimum} >= ${minimum_volume}
       and ${value} ${signal === 'score' ? sql`<=` : sql`>=`} ${threshold}::float8
     order by bucket_at, id`.execute(tx)
  return rows
}

/** The projects with counters in one bucket, and their number in the hour that ends with it. */
export async function findActive(
  tx: ReadTx,
  bucket: Date,
): Promise<{ project_ids: number[]; in_last_hour: number }> {
  const { rows } = await sql<{ project_ids: number[]; in_last_hour: number }>`
    select coalesce(array_agg(project_id order by project_id) filter (where is_current), '{}') as project_ids,
           count(*)::int as in_last_hour
      from (select project_id, bool_or(bucket_at = ${bucket}) as is_current from mail.sending_counters
             where bucket_at > ${bucket}::timestamptz - interval '1 hour' and bucket_at <= ${bucket}
             group by project_id) as active`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('the database returned no row')
  return row
}
