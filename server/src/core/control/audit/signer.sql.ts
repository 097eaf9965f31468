import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import { bareAuditLine } from './json-lines.sql.ts'

export const signedPageSize = 1000

/** Rows of one chain in order, after `after` and up to and including `upTo`. */
export async function readChain(
  tx: ReadTx,
  { chain, after, upTo }: { chain: number; after: number; upTo: number },
): Promise<string[]> {
  const { rows } = await sql<{ line: string }>`
    select ${bareAuditLine} as line from control.audit a
     where a.chain = ${chain} and a.seq > ${after} and a.seq <= ${upTo}
     order by a.seq limit ${signedPageSize}`.execute(tx)
  return rows.map(({ line }) => line)
}
