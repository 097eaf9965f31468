import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'

export interface DailyCounts {
  projectId: number
  sent?: number
  delivered?: number
  deferred?: number
  bounced?: number
  failed?: number
  complained?: number
  suppressed?: number
}

type Counted = Exclude<keyof DailyCounts, 'projectId'>

/** A project can occur more than once. Its row is locked until the transaction ends, so call this last. */
export async function addToDay(tx: Tx, counts: readonly DailyCounts[]): Promise<void> {
  const all = (name: Counted) => counts.map((one) => one[name] ?? 0)
  await sql`
    insert into mail.daily_counters as day
      (project_id, day, sent, delivered, deferred, bounced, failed, complained, suppressed)
    select project_id, (postern.now() at time zone 'UTC')::date, sum(sent), sum(delivered), sum(deferred),
           sum(bounced), sum(failed), sum(complained), sum(suppressed)
    from unnest(${counts.map(({ projectId }) => projectId)}::bigint[],
                ${all('sent')}::bigint[], ${all('delivered')}::bigint[], ${all('deferred')}::bigint[],
                ${all('bounced')}::bigint[], ${all('failed')}::bigint[], ${all('complained')}::bigint[],
                ${all('suppressed')}::bigint[])
      as more (project_id, sent, delivered, deferred, bounced, failed, complained, suppressed)
    group by project_id
    -- Concurrent transactions lock the rows in the same order.
    order by project_id
    on conflict (shard, project_id, day) do update set
      sent = day.sent + excluded.sent, delivered = day.delivered + excluded.delivered,
      deferred = day.deferred + excluded.deferred, bounced = day.bounced + excluded.bounced,
      failed = day.failed + excluded.failed, complained = day.complained + excluded.complained,
      suppressed = day.suppressed + excluded.suppressed`.execute(tx)
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
