import { sql } from 'kysely'
import type { ReadTx } from './db.ts'

/** Limits each of the transaction's further statements to this time, instead of the connection's default. */
export async function setStatementTimeout(tx: ReadTx, ms: number): Promise<void> {
  await sql`select set_config('statement_timeout', ${String(ms)}, true)`.execute(tx)
}
