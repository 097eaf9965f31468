import { sql } from 'kysely'
import { UsageError } from '../errors.ts'
import { publicationName } from './database-kind.ts'
import type { ReadTx } from './db.ts'

/**
 * Fails unless the cell has a complete control replica with an active subscription. Without one, addresses and endpoints
 * would be missing: the cell would permanently reject mail and lose events.
 */
export async function requireReplica(tx: ReadTx): Promise<void> {
  const { rows } = await sql<{ is_subscribed: boolean; is_complete: boolean | null }>`
    select count(*) > 0 as is_subscribed,
           (select bool_and(srsubstate = 'r') from pg_catalog.pg_subscription_rel
             where srsubid = any(array_agg(oid))) as is_complete
      from pg_catalog.pg_subscription
     where subdbid = (select oid from pg_catalog.pg_database where datname = current_database())
       and subenabled and subpublications @> array[${publicationName}]`.execute(tx)
  const [row] = rows
  if (row?.is_subscribed && row.is_complete) return
  throw new UsageError(
    'This cell has no complete replica of control yet, or is not replicating. Run `postern cell join --name <cell>` and wait until it finishes.',
  )
}
