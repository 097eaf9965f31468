import { sql } from 'kysely'
import type { UnscopedDb } from '../../platform/db/db.ts'
import type { TestDatabase } from './database.ts'

/** By table and index. */
type RowsRead = Record<string, number>

/**
 * The rows and index entries that PostgreSQL reads for `work`. `used` are the connections of `work`, with one connection
 * each; `work` should have run before, because the first run also reads the catalogs.
 */
export async function rowsReadBy(
  database: TestDatabase,
  used: readonly UnscopedDb[],
  work: () => Promise<unknown>,
): Promise<RowsRead> {
  const before = await totals(database, used)
  await work()
  const after = await totals(database, used)
  return Object.fromEntries(
    [...after].flatMap(([relation, count]) => {
      const read = count - (before.get(relation) ?? 0)
      return read === 0 ? [] : [[relation, read]]
    }),
  )
}

async function totals(
  database: TestDatabase,
  used: readonly UnscopedDb[],
): Promise<ReadonlyMap<string, number>> {
  for (const db of used) await db.readOne((tx) => sql`select pg_stat_force_next_flush()`.execute(tx))
  // The caller may have filled the tables here. VACUUM reads them to summarize BRIN indexes.
  await database.query('select pg_stat_force_next_flush()')
  const rows = await database.query<{ relation: string; rows: number }>(
    `select relname as relation, seq_tup_read::int as rows from pg_stat_user_tables
     union all
     select indexrelname, idx_tup_read::int from pg_stat_user_indexes`,
  )
  return new Map(rows.map(({ relation, rows: count }) => [relation, count]))
}

export const sumOfRows = (read: RowsRead = {}): number =>
  Object.values(read).reduce((sum, rows) => sum + rows, 0)
