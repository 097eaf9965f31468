import { sql } from 'kysely'
import { UsageError } from '../errors.ts'
import { publicationName } from './database-kind.ts'
import type { ReadTx } from './db.ts'

/**
 * In a cell that has no whole copy of control, or none that follows, no address is known and no endpoint is told
 * anything: mail would be refused for good, and events lost. So nobody begins to work there.
 */
export async function requireReplica(tx: ReadTx): Promise<void> {
  const { rows } = await sql<{ is_followed: boolean; is_whole: boolean | null }>`
    select count(*) > 0 as is_followed,
           (select bool_and(srsubstate = 'r') from pg_catalog.pg_subscription_rel
             where srsubid = any(array_agg(oid))) as is_whole
      from pg_catalog.pg_subscription
     where subdbid = (select oid from pg_catalog.pg_database where datname = current_database())
       and subenabled and subpublications @> array[${publicationName}]`.execute(tx)
  const [row] = rows
  if (row?.is_followed && row.is_whole) return
  throw new UsageError(
    'This cell has no complete replica of control yet, or is not replicating. Run `postern cell join --name <cell>` and wait until it finishes.',
  )
}
