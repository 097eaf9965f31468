import { sql } from 'kysely'
import type { OneStatement, ReadTx } from '../../../platform/db/db.ts'
import { type BucketKind, bucketKinds } from './counters.sql.ts'

export type Totals = Record<BucketKind, number>

const sums = sql.raw(
  bucketKinds.map((kind) => `coalesce(sum(${kind} + excluded_${kind}), 0)::bigint as ${kind}`).join(', '),
)
const columns = sql.raw(bucketKinds.join(', '))
const sumsOfHour = sql.raw(bucketKinds.map((kind) => `sum(${kind})::bigint as ${kind}`).join(', '))

/**
 * Inserts the totals of the next buckets that have ended, at most `limit`, and returns their number. A bucket that has ended
 * does not change, so it does no harm if two workers sum it up: the second row is not inserted.
 */
export async function insertTotals(
  tx: OneStatement,
  { limit, settlingMs }: { limit: number; settlingMs: number },
): Promise<number> {
  const { rows } = await sql<{ folded: number }>`
    with ended as (
      select date_bin('5 minutes', postern.now() - ${settlingMs} * interval '1 millisecond', 'epoch') as until
    ), next as (
      select greatest((select max(bucket_at) from mail.sending_totals) + interval '5 minutes',
                      until - interval '1 day') as since, until
        from ended
    ), inserted as (
      insert into mail.sending_totals (bucket_at, ${columns})
      select bucket.at, total.*
        from next
       cross join generate_series(since, least(until, since + ${limit}::int * interval '5 minutes') - interval '5 minutes',
                                  interval '5 minutes') as bucket (at)
       cross join lateral (select ${sums} from mail.sending_counters where bucket_at = bucket.at) as total
      on conflict (bucket_at) do nothing
      returning bucket_at
    ), old as (
      delete from mail.sending_totals where bucket_at < postern.now() - interval '90 days'
    )
    select count(*)::int as folded from inserted`.execute(tx)
  return rows[0]?.folded ?? 0
}

/** The last 24 hours, without hours that have no totals. `counted_until`: the end of the last bucket. */
export async function listHourTotals(
  tx: ReadTx,
): Promise<(Totals & { starts_at: Date; counted_until: Date })[]> {
  const { rows } = await sql<Totals & { starts_at: Date; counted_until: Date }>`
    select date_trunc('hour', bucket_at, 'UTC') as starts_at, max(bucket_at) + interval '5 minutes' as counted_until,
           ${sumsOfHour}
      from mail.sending_totals
     where bucket_at >= date_trunc('hour', postern.now(), 'UTC') - interval '23 hours'
     group by 1 order by 1`.execute(tx)
  return rows
}
