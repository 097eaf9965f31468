import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import { auditLine } from './json-lines.sql.ts'

/** The last row of a chain, and the last row that a checkpoint covers. 0 if there is none. */
export async function findEnds(tx: ReadTx, chain: number): Promise<{ last: number; covered: number }> {
  const { rows } = await sql<{ last: number; covered: number }>`
    select coalesce((select seq from control.audit where chain = ${chain} order by seq desc limit 1), 0) as last,
           coalesce((select seq from control.audit_covered where chain = ${chain}), 0) as covered`.execute(tx)
  return rows[0] ?? { last: 0, covered: 0 }
}

export async function findTime(tx: ReadTx, chain: number, seq: number): Promise<Date | undefined> {
  const { rows } = await sql<{ at: Date }>`
    select at from control.audit where chain = ${chain} and seq = ${seq}`.execute(tx)
  return rows[0]?.at
}

export interface CoveringPage {
  /** The first checkpoint of the page that lists the row or a later one of its chain. */
  found: { id: number; seq: number } | null
  /** The last checkpoint of the page. Null if the page is empty. */
  last: { id: number; at: Date } | null
}

/** Checkpoints in the order of their times. Few at once, because a checkpoint can have thousands of heads. */
export async function findCovering(
  tx: ReadTx,
  { chain, seq }: { chain: number; seq: number },
  after: { id: number; at: Date },
): Promise<CoveringPage> {
  const { rows } = await sql<CoveringPage>`
    with page as materialized (
      select id, at, heads from control.audit_checkpoints
       where (at, id) > (${after.at}, ${after.id}) order by at, id limit 20
    )
    select (select json_build_object('id', page.id, 'seq', (head ->> 'seq')::bigint)
              from page cross join lateral jsonb_array_elements(page.heads) as head
             where (head ->> 'chain')::bigint = ${chain} and (head ->> 'seq')::bigint >= ${seq}
             order by page.id limit 1) as found,
           (select json_build_object('id', id, 'at', at) from page order by at desc, id desc limit 1) as last`.execute(
    tx,
  )
  const [page] = rows
  if (!page) throw new Error('the statement returned no page')
  return { found: page.found, last: page.last && { ...page.last, at: new Date(page.last.at) } }
}

export async function readExcerpt(
  tx: ReadTx,
  { chain, after, upTo, limit }: { chain: number; after: number; upTo: number; limit: number },
): Promise<string[]> {
  const { rows } = await sql<{ line: string }>`
    select ${auditLine} as line from control.audit a
     where a.chain = ${chain} and a.seq > ${after} and a.seq <= ${upTo} order by a.seq limit ${limit}`.execute(
    tx,
  )
  return rows.map(({ line }) => line)
}
