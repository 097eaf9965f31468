import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import type { SuppressionList, UsageRow } from './acceptance.sql.ts'

/** What a project has used today and this month. Does not lock the counters. */
export async function findUsed(
  tx: ReadTx,
  projectId: number,
): Promise<Pick<UsageRow, 'period' | 'accepted' | 'stored_bytes'>[]> {
  const { rows } = await sql<Pick<UsageRow, 'period' | 'accepted' | 'stored_bytes'>>`
    select period, accepted, stored_bytes from mail.usage
     where shard = postern.shard_of(${projectId}) and project_id = ${projectId}
       and starts_on = date_trunc(period, postern.now() at time zone 'UTC')::date`.execute(tx)
  return rows
}

/** The same as `findSuppressed` of acceptance, for one address. A customer cannot read the list for all projects. */
export async function findSuppression(
  tx: ReadTx,
  projectId: number,
  address: string,
): Promise<SuppressionList | null> {
  const { rows } = await sql<{ list: SuppressionList | null }>`
    select case when exists (select from mail.suppressions
                              where shard = postern.shard_of(${projectId}) and project_id = ${projectId}
                                and address = lower(${address})) then 'project'
                when control.is_platform_suppressed(${address}) then 'platform' end as list`.execute(tx)
  return rows[0]?.list ?? null
}
