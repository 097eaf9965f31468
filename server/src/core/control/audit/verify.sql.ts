import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'

/** A head and the last row of its chain. The numbers are text, because a forged number can exceed JavaScript's range. */
export interface HeadRow {
  chain: string
  seq: string
  hash: string
  last: string | null
  isRight: boolean
}

export const headPageSize = 5000

export async function readHeads(tx: ReadTx, after: string, chain: number | undefined): Promise<HeadRow[]> {
  const { rows } = await sql<HeadRow>`
    select heads.chain::text as chain, heads.seq::text as seq, encode(heads.hash, 'hex') as hash,
           last.seq::text as last, coalesce(heads.seq = last.seq and heads.hash = last.hash, false) as "isRight"
      from (select * from control.audit_heads where chain > ${after}::bigint
               and ${chain === undefined ? sql`true` : sql`chain = ${chain}`}
             order by chain limit ${headPageSize}) heads
      left join lateral (select seq, hash from control.audit a where a.chain = heads.chain
                          order by seq desc limit 1) last on true
     order by heads.chain`.execute(tx)
  return rows
}

/** The first of these chains that has no head. */
export async function findHeadless(tx: ReadTx, chains: number[]): Promise<number | undefined> {
  const { rows } = await sql<{ chain: number }>`
    select given.chain from unnest(${chains}::bigint[]) as given (chain)
     where not exists (select from control.audit_heads heads where heads.chain = given.chain)
     order by given.chain limit 1`.execute(tx)
  return rows[0]?.chain
}

/** The hash of a checkpoint. */
export async function findHash(tx: ReadTx, id: number): Promise<string | undefined> {
  const { rows } = await sql<{ hash: string }>`
    select encode(hash, 'hex') as hash from control.audit_checkpoints where id = ${id}`.execute(tx)
  return rows[0]?.hash
}

/** The total number of erased entries in the rows that record erasures. */
export async function countRecordedErasures(tx: ReadTx): Promise<number> {
  const { rows } = await sql<{ erased: number }>`
    select coalesce(sum((a.after ->> 'rows')::numeric), 0) as erased from control.audit a
     where a.operation = 'audit.erase' and jsonb_typeof(a.after -> 'rows') = 'number'`.execute(tx)
  return rows[0]?.erased ?? 0
}
