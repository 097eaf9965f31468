import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'

export const countedKinds = [
  'sent',
  'delivered',
  'deferred',
  'bounced',
  'failed',
  'complained',
  'suppressed',
] as const
export type CountedKind = (typeof countedKinds)[number]

/** `rejected`: bounced or failed without having been sent. */
export const bucketKinds = [...countedKinds, 'rejected'] as const
export type BucketKind = (typeof bucketKinds)[number]

export interface SendingCount extends Partial<Record<BucketKind, number>> {
  projectId: number
  messageId: string
  /**
   * Neither policies nor the score use it: the operator ended it (a discard, or mail that expired while it could not be
   * sent), or it was accepted with a test key.
   */
  isExcluded?: boolean
}

// The lists of columns are written once, because this statement runs for every group of results and reports.

const excluded = bucketKinds.map((kind) => `excluded_${kind}`)
const bucketColumns = [...bucketKinds, ...excluded]
const dayColumns = [...countedKinds, 'failed_by_operator']

const sumOf = (kind: number, condition: string, name: string): string =>
  `coalesce(sum(count) filter (where kind = ${kind} and ${condition}), 0)::integer as ${name}`
const sums = sql.raw(
  [
    ...bucketKinds.map((name, kind) => sumOf(kind, 'not is_excluded', name)),
    ...bucketKinds.map((name, kind) => sumOf(kind, 'is_excluded', `excluded_${name}`)),
    sumOf(bucketKinds.indexOf('failed'), 'is_by_operator', 'failed_by_operator'),
  ].join(', '),
)

/** For `on conflict do update`. */
const added = (table: string, columns: readonly string[]) =>
  sql.raw(columns.map((name) => `${name} = ${table}.${name} + excluded.${name}`).join(', '))
const listed = (columns: readonly string[]) => sql.raw(columns.join(', '))

const columnsOfBucket = listed(bucketColumns)
const columnsOfDay = listed(dayColumns)
const sumsOfDay = listed([...countedKinds.map((kind) => `${kind} + excluded_${kind}`), 'failed_by_operator'])
const addedToBucket = added('bucket', bucketColumns)
const addedToDay = added('day', dayColumns)

/** A project can occur more than once. Its rows are locked until the transaction ends, so call this last. */
export async function addCounts(tx: Tx, counts: readonly SendingCount[]): Promise<void> {
  const events = counts.flatMap((one) =>
    bucketKinds.flatMap((name, kind) => (one[name] ? [{ ...one, kind, count: one[name] }] : [])),
  )
  await sql`
    with summed as materialized (
      select project_id, ${sums}
        from (select project_id, kind, count, is_excluded as is_by_operator,
                     is_excluded or coalesce(message_id < postern.uuid7_floor(restriction.ended_at), false) as is_excluded
                from unnest(${events.map(({ projectId }) => projectId)}::bigint[],
                            ${events.map(({ messageId }) => messageId)}::uuid[],
                            ${events.map(({ isExcluded }) => isExcluded ?? false)}::boolean[],
                            ${events.map(({ kind }) => kind)}::smallint[],
                            ${events.map(({ count }) => count)}::integer[])
                       as event (project_id, message_id, is_excluded, kind, count)
                left join control.restriction_ends as restriction using (project_id)) as events
       -- Concurrent transactions lock the rows in the same order.
       group by project_id order by project_id
    ), bucket as (
      -- Runs after the statement below, so the row for the day is always locked first.
      insert into mail.sending_counters as bucket (project_id, bucket_at, ${columnsOfBucket})
      select project_id, date_bin('5 minutes', postern.now(), 'epoch'), ${columnsOfBucket} from summed
      on conflict (shard, project_id, bucket_at) do update set ${addedToBucket}
    )
    insert into mail.daily_counters as day (project_id, day, ${columnsOfDay})
    select project_id, (postern.now() at time zone 'UTC')::date, ${sumsOfDay} from summed
    on conflict (shard, project_id, day) do update set ${addedToDay}`.execute(tx)
}

/**
 * One row per project is enough, regardless of what changed, because the relay to the control database
 * reads the totals.
 */
export async function insertStatsChanged(tx: Tx, projectIds: readonly number[]): Promise<void> {
  await sql`
    insert into mail.outbox (project_id, topic, payload)
    select distinct id, 'project.stats_changed', '{}'::jsonb from unnest(${projectIds}::bigint[]) as id`.execute(
    tx,
  )
  tx.hint('outbox')
}
