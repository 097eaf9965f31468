import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import type { UsageRow } from './acceptance.sql.ts'

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
