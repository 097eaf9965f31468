import { sql } from 'kysely'
import type { ReadTx } from './db.ts'

/** The database's time, which all processes share. Constant within a transaction. */
export async function databaseTime(tx: ReadTx): Promise<Date> {
  const { rows } = await sql<{ now: Date }>`select postern.now() as now`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('the clock returned no row')
  return row.now
}
