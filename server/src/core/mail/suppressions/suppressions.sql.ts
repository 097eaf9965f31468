import { type Selectable, sql } from 'kysely'
import type { ReadTx, Schema, Tx } from '../../../platform/db/db.ts'
import type { ListedAddress } from '../../shared/address-import.ts'

export type SuppressionRow = Pick<
  Selectable<Schema['mail.suppressions']>,
  'address' | 'reason' | 'message_id' | 'created_at'
>

const columns = sql`address, reason, message_id, created_at`
const ofProject = (projectId: number) => sql<boolean>`
  shard = postern.shard_of(${projectId}) and project_id = ${projectId}`

/** Ordered by the primary key. */
export async function listByProject(
  tx: ReadTx,
  projectId: number,
  limit: number,
  after: string | undefined,
): Promise<SuppressionRow[]> {
  const { rows } = await sql<SuppressionRow>`
    select ${columns} from mail.suppressions
    where ${ofProject(projectId)} ${after === undefined ? sql`` : sql`and address > ${after}`}
    order by address limit ${limit}`.execute(tx)
  return rows
}

/**
 * Lower-cased by the database, because JavaScript converts some non-Latin letters to lower case differently.
 */
export async function insert(tx: Tx, projectId: number, address: string): Promise<boolean> {
  const { numAffectedRows } = await sql`
    insert into mail.suppressions (project_id, address, reason)
    values (${projectId}, lower(${address}), 'manual') on conflict do nothing`.execute(tx)
  return numAffectedRows === 1n
}

export interface AddedSuppression {
  /** In lower case. */
  address: string
  reason: string
}

/** Addresses that are already suppressed keep their reason. */
export async function insertMany(
  tx: Tx,
  projectId: number,
  added: readonly AddedSuppression[],
  createdAt: Date,
): Promise<void> {
  await sql`
    insert into mail.suppressions (project_id, address, reason, created_at)
    select ${projectId}::bigint, address, reason, ${createdAt}::timestamptz
      from unnest(${added.map(({ address }) => address)}::text[], ${added.map(({ reason }) => reason)}::text[])
        as added (address, reason)
     -- Concurrent transactions insert the rows in the same order.
     order by address
    on conflict do nothing`.execute(tx)
}

/** In the order of the addresses. */
export async function findListed(
  tx: ReadTx,
  projectId: number,
  addresses: readonly string[],
): Promise<ListedAddress[]> {
  const { rows } = await sql<ListedAddress>`
    select lower(requested.address) as address, suppressions.address is not null as is_suppressed
      from unnest(${addresses}::text[]) with ordinality as requested (address, no)
      left join mail.suppressions as suppressions
        on suppressions.shard = postern.shard_of(${projectId}) and suppressions.project_id = ${projectId}
       and suppressions.address = lower(requested.address)
     order by requested.no`.execute(tx)
  return rows
}

/** The lock is held until the end of the transaction. */
export async function lockManual(tx: Tx, projectId: number): Promise<void> {
  await sql`
    select pg_advisory_xact_lock(hashtextextended('mail.suppressions ' || ${projectId}::bigint, 0))`.execute(
    tx,
  )
}

export async function countManual(tx: ReadTx, projectId: number, atMost: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from (
      select from mail.suppressions where ${ofProject(projectId)} and reason = 'manual' limit ${atMost}) as few`.execute(
    tx,
  )
  return rows[0]?.count ?? 0
}

export interface AutomaticSuppression {
  projectId: number
  recipient: string
  messageId: string
}

/** An address that is already suppressed keeps its reason, unless the new reason is a complaint. */
export async function insertAutomatic(
  tx: Tx,
  added: readonly AutomaticSuppression[],
  reason: 'bounce' | 'complaint',
): Promise<void> {
  if (added.length === 0) return
  await sql`
    insert into mail.suppressions (project_id, address, reason, message_id)
    select distinct on (project_id, lower(address)) project_id, lower(address), ${reason}, message_id
      from unnest(${added.map(({ projectId }) => projectId)}::bigint[],
                  ${added.map(({ recipient }) => recipient)}::text[],
                  ${added.map(({ messageId }) => messageId)}::uuid[]) as added (project_id, address, message_id)
     -- Concurrent transactions insert the rows in the same order.
     order by project_id, lower(address)
    on conflict ${
      reason === 'complaint'
        ? sql`(shard, project_id, address) do update set reason = excluded.reason, message_id = excluded.message_id
              where suppressions.reason <> 'complaint'`
        : sql`do nothing`
    }`.execute(tx)
}

export async function find(
  tx: ReadTx,
  projectId: number,
  address: string,
): Promise<SuppressionRow | undefined> {
  const { rows } = await sql<SuppressionRow>`
    select ${columns} from mail.suppressions
    where ${ofProject(projectId)} and address = lower(${address})`.execute(tx)
  return rows[0]
}

/** Does not delete a suppression caused by a complaint. */
export async function remove(
  tx: Tx,
  projectId: number,
  address: string,
): Promise<SuppressionRow | undefined> {
  const { rows } = await sql<SuppressionRow>`
    delete from mail.suppressions
    where ${ofProject(projectId)} and address = lower(${address}) and reason <> 'complaint'
    returning ${columns}`.execute(tx)
  return rows[0]
}

/** Does nothing if another suppression or a complaint has changed the row in the meantime. */
export async function removeExact(
  tx: Tx,
  projectId: number,
  address: string,
  { reason, createdAt }: { reason: string; createdAt: Date },
): Promise<void> {
  await sql`
    delete from mail.suppressions
    where ${ofProject(projectId)} and address = ${address} and reason = ${reason}
      and date_trunc('milliseconds', created_at) = ${createdAt}`.execute(tx)
}
