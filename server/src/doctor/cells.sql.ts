import { sql } from 'kysely'
import type { ReadTx } from '../platform/db/db.ts'

/** The time according to that database server's clock. */
export async function findEpochMs(tx: ReadTx): Promise<number> {
  const { rows } = await sql<{ ms: number }>`
    select (1000 * extract(epoch from postern.now()))::float8 as ms`.execute(tx)
  if (!rows[0]) throw new Error('a select without from returned no row')
  return rows[0].ms
}
