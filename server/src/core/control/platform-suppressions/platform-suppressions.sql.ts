import { type Selectable, sql } from 'kysely'
import type { ReadTx, Schema, Tx } from '../../../platform/db/db.ts'
import type { ListedAddress } from '../../shared/address-import.ts'

export type PlatformSuppressionRow = Selectable<Schema['control.platform_suppressions']>

const columns = sql`address, reason, created_at`

/** Serializes all additions until the transaction ends, because the number is limited. Reads do not wait. */
export async function lockTable(tx: Tx): Promise<void> {
  await sql`lock table control.platform_suppressions in share row exclusive mode`.execute(tx)
}

export async function find(tx: ReadTx, address: string): Promise<PlatformSuppressionRow | undefined> {
  const { rows } = await sql<PlatformSuppressionRow>`
    select ${columns} from control.platform_suppressions where address = lower(${address})`.execute(tx)
  return rows[0]
}

/** Ordered by the primary key. */
export async function list(
  tx: ReadTx,
  { limit, after }: { limit: number; after: string | undefined },
): Promise<PlatformSuppressionRow[]> {
  const { rows } = await sql<PlatformSuppressionRow>`
    select ${columns} from control.platform_suppressions
    ${after === undefined ? sql`` : sql`where address > ${after}`}
    order by address limit ${limit}`.execute(tx)
  return rows
}

export async function count(tx: ReadTx): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from control.platform_suppressions`.execute(tx)
  return rows[0]?.count ?? 0
}

/** In the order of the addresses. */
export async function findListed(tx: ReadTx, addresses: readonly string[]): Promise<ListedAddress[]> {
  const { rows } = await sql<ListedAddress>`
    select lower(requested.address) as address, suppressions.address is not null as is_suppressed
      from unnest(${addresses}::text[]) with ordinality as requested (address, no)
      left join control.platform_suppressions as suppressions on suppressions.address = lower(requested.address)
     order by requested.no`.execute(tx)
  return rows
}

/** Lower-cased by the database, because JavaScript converts some non-Latin letters to lower case differently. */
export async function insert(
  tx: Tx,
  added: readonly { address: string; reason: string }[],
): Promise<PlatformSuppressionRow[]> {
  const { rows } = await sql<PlatformSuppressionRow>`
    insert into control.platform_suppressions (address, reason)
    select lower(address), reason
      from unnest(${added.map(({ address }) => address)}::text[], ${added.map(({ reason }) => reason)}::text[])
        as added (address, reason)
    returning ${columns}`.execute(tx)
  return rows
}

export async function remove(tx: Tx, address: string): Promise<void> {
  await sql`delete from control.platform_suppressions where address = ${address}`.execute(tx)
}
