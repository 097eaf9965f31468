import { type RawBuilder, sql } from 'kysely'
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
const bucketKinds = [...countedKinds, 'rejected'] as const
type BucketKind = (typeof bucketKinds)[number]

export interface SendingCount extends Partial<Record<BucketKind, number>> {
  projectId: number
  messageId: string
  /**
   * Neither policies nor the score use it: the operator ended it (a discard, or mail that expired while it could not be
   * sent), or it was accepted with a test key.
   */
  isExcluded?: boolean
}

const listOf = <Kind extends string>(names: readonly Kind[], column: (kind: Kind) => RawBuilder<unknown>) =>
  sql.join(names.map(column))
const columnsOf = (names: readonly string[]) => listOf(names, (name) => sql.ref(name))
const excluded = bucketKinds.map((kind) => `excluded_${kind}`)

const sumsOf = (names: readonly string[], isExcluded: boolean | undefined) =>
  listOf(names, (name) => {
    const filter = isExcluded === undefined ? sql`` : sql`filter (where is_excluded = ${sql.lit(isExcluded)})`
    return sql`coalesce(sum(${sql.ref(name)}) ${filter}, 0)`
  })

/** For `on conflict do update`. */
const added = (table: string, columns: readonly string[]) =>
  listOf(
    columns,
    (name) => sql`${sql.ref(name)} = ${sql.ref(`${table}.${name}`)} + ${sql.ref(`excluded.${name}`)}`,
  )

/** A project can occur more than once. Its rows are locked until the transaction ends, so call this last. */
export async function addCounts(tx: Tx, counts: readonly SendingCount[]): Promise<void> {
  const all = (kind: BucketKind) => sql`${counts.map((one) => one[kind] ?? 0)}::integer[]`
  await sql`
    with counted as materialized (
      select project_id, is_excluded as is_by_operator, ${columnsOf(bucketKinds)},
             coalesce(is_excluded or message_id < postern.uuid7_floor(restriction.ended_at), false) as is_excluded
        from unnest(${counts.map(({ projectId }) => projectId)}::bigint[],
                    ${counts.map(({ messageId }) => messageId)}::uuid[],
                    ${counts.map(({ isExcluded }) => isExcluded ?? false)}::boolean[], ${listOf(bucketKinds, all)})
               as event (project_id, message_id, is_excluded, ${columnsOf(bucketKinds)})
        left join control.restriction_ends as restriction using (project_id)
    ), bucket as (
      -- Runs after the statement below, so the row for the day is always locked first.
      insert into mail.sending_counters as bucket (project_id, bucket_at, ${columnsOf([...bucketKinds, ...excluded])})
      select project_id, date_bin('5 minutes', postern.now(), 'epoch'), ${sumsOf(bucketKinds, false)},
             ${sumsOf(bucketKinds, true)}
        from counted group by project_id order by project_id
      on conflict (shard, project_id, bucket_at) do update set ${added('bucket', [...bucketKinds, ...excluded])}
    )
    insert into mail.daily_counters as day (project_id, day, ${columnsOf(countedKinds)}, failed_by_operator)
    select project_id, (postern.now() at time zone 'UTC')::date, ${sumsOf(countedKinds, undefined)},
           coalesce(sum(failed) filter (where is_by_operator), 0)
      from counted group by project_id
    -- Concurrent transactions lock the rows in the same order.
     order by project_id
    on conflict (shard, project_id, day) do update set ${added('day', [...countedKinds, 'failed_by_operator'])}`.execute(
    tx,
  )
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
