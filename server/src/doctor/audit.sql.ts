import { sql } from 'kysely'
import type { ReadTx } from '../platform/db/db.ts'

/** Age in seconds of the oldest audit row without a checkpoint; null if every row has one. */
export async function unsignedSeconds(tx: ReadTx): Promise<number | null> {
  const { rows } = await sql<{ seconds: number | null }>`
    select extract(epoch from postern.now() - min(audit.at))::float8 as seconds
      from control.audit_heads as heads
      left join control.audit_covered as covered on covered.chain = heads.chain
      join control.audit as audit on audit.chain = heads.chain and audit.seq = coalesce(covered.seq, 0) + 1
     where heads.seq > coalesce(covered.seq, 0)`.execute(tx)
  return rows[0]?.seconds ?? null
}
