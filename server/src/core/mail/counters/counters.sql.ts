import { type RawBuilder, sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'

export const countedKinds = [
  ...['sent', 'delivered', 'deferred', 'bounced', 'failed', 'complained', 'suppressed'],
] as readonly CountedKind[]
export type CountedKind =
  | 'sent'
  | 'delivered'
  | 'deferred'
  | 'bounced'
  | 'failed'
  | 'complained'
  | 'suppressed'

export interface SendingCount extends Partial<Record<CountedKind, number>> {
  projectId: number
  messageId: string
  /**
   * Neither policies nor the score judge it: the operator ended it (a discard, or mail that expired while it could not be
   * sent), or it was accepted with a test key.
   */
  isExcluded?: boolean
}

const listOf = (column: (kind: CountedKind) => RawBuilder<unknown>) => sql.join(countedKinds.map(column))

const kinds = listOf((kind) => sql.ref(kind))
const excludedKinds = listOf((kind) => sql.ref(`excluded_${kind}`))

/** A project can occur more than once. Its rows are locked until the transaction ends, so call this last. */
export async function addCounts(tx: Tx, counts: readonly SendingCount[]): Promise<void> {
  const all = (kind: CountedKind) => sql`${counts.map((one) => one[kind] ?? 0)}::integer[]`
  const sums = (isExcluded: RawBuilder<unknown>) =>
    listOf((kind) => sql`coalesce(sum(${sql.ref(kind)}) filter (where ${isExcluded}), 0)`)
  const added = (table: string, columns: readonly string[]) =>
    sql.join(
      columns.map(
        (name) => sql`${sql.ref(name)} = ${sql.ref(`${table}.${name}`)} + ${sql.ref(`excluded.${name}`)}`,
      ),
    )
  await sql`
    with counted as materialized (
      select project_id, coalesce(is_excluded or message_id < postern.uuid7_floor(since.at), false) as is_excluded,
             is_excluded as is_ended_by_operator, ${kinds}
        from unnest(${counts.map(({ projectId }) => projectId)}::bigint[],
                    ${counts.map(({ messageId }) => messageId)}::uuid[],
                    ${counts.map(({ isExcluded }) => isExcluded ?? false)}::boolean[], ${listOf(all)})
               as event (project_id, message_id, is_excluded, ${kinds})
        -- Mail that was accepted before the end of the project's last intervention is not judged again.
        left join control.judged_since as since using (project_id)
    ), bucket as (
      -- Runs after the statement below, so the row for the day is always locked first.
      insert into mail.sending_counters as bucket (project_id, bucket_at, ${kinds}, ${excludedKinds})
      select project_id, date_bin('5 minutes', postern.now(), 'epoch'), ${sums(sql`not is_excluded`)},
             ${sums(sql`is_excluded`)}
        from counted group by project_id order by project_id
      on conflict (shard, project_id, bucket_at) do update set
        ${added('bucket', [...countedKinds, ...countedKinds.map((kind) => `excluded_${kind}`)])}
    )
    insert into mail.daily_counters as day (project_id, day, ${kinds}, excluded_failed)
    select project_id, (postern.now() at time zone 'UTC')::date, ${sums(sql`true`)},
           coalesce(sum(failed) filter (where is_ended_by_operator), 0)
      from counted group by project_id
    -- Concurrent transactions lock the rows in the same order.
     order by project_id
    on conflict (shard, project_id, day) do update set ${added('day', [...countedKinds, 'excluded_failed'])}`.execute(
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
