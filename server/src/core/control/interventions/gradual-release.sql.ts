import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'

// These statements run in the mail database. Mail of test keys is not paced, so it does not count.

/** Whether mail that was ready at that time is still queued: one index lookup for each of the project's lanes. */
export async function hasReadyBefore(mail: ReadTx, projectId: number, before: Date): Promise<boolean> {
  const { rows } = await sql`
    select from (values ('service'), ('ses')) as provider (name)
     cross join (values (false), (true)) as size (is_large)
     cross join lateral (
       select from mail.dispatch
        where shard = postern.shard_of(${projectId}) and project_id = ${projectId} and provider = provider.name
          and dispatch.is_large = size.is_large and state = 'ready' and due_at <= ${before}
        limit 1) as ready
     limit 1`.execute(mail)
  return rows.length > 0
}

/** The number of recipients that can be handed over now. */
export async function countReady(mail: ReadTx, projectId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from mail.dispatch
     where shard = postern.shard_of(${projectId}) and project_id = ${projectId} and provider <> 'none'
       and state = 'ready'`.execute(mail)
  return rows[0]?.count ?? 0
}
