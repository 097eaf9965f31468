import { sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../platform/db/db.ts'

export async function insert(tx: Tx, projectId: number, topic: string, payload: object): Promise<void> {
  await sql`
    insert into control.outbox (project_id, topic, payload)
    values (${projectId}, ${topic}, ${JSON.stringify(payload)}::jsonb)`.execute(tx)
  tx.hint('outbox')
}

export interface ControlRow {
  id: number
  project_id: number
  topic: string
  payload: unknown
}

/** The rows after an id that belong to a cell's shards, ordered by id. */
export async function selectRows(
  tx: ReadTx,
  topics: readonly string[],
  { afterId, atMost, shards }: { afterId: number; atMost: number; shards?: readonly number[] | undefined },
): Promise<ControlRow[]> {
  const { rows } = await sql<ControlRow>`
    select id, project_id, topic, payload from control.outbox
     where id > ${afterId} and topic = any(${topics}::text[])
           ${shards === undefined ? sql`` : sql`and shard = any(${shards}::smallint[])`}
     order by id limit ${atMost}`.execute(tx)
  return rows
}

/**
 * True if this transaction must apply the row. False if another transaction has applied it, or if the row was deleted after
 * it was read. A deleted row was applied, although its id may have been purged from mail.control_applied.
 */
export async function takeRow(tx: Tx, id: number): Promise<boolean> {
  const { rows } = await sql`
    insert into mail.control_applied (outbox_id) select id from control.outbox where id = ${id}
    on conflict do nothing returning outbox_id`.execute(tx)
  return rows.length > 0
}

export async function deleteRows(tx: Tx, ids: readonly number[]): Promise<void> {
  await sql`delete from control.outbox where id = any(${ids}::bigint[])`.execute(tx)
}

export async function deleteApplied(tx: OneStatement, atMost: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from mail.control_applied where ctid = any(array(
      select applied.ctid from mail.control_applied as applied
       where applied_at < postern.now() - interval '1 day'
         and not exists (select from control.outbox where outbox.id = applied.outbox_id)
       limit ${atMost}))`.execute(tx)
  return Number(numAffectedRows ?? 0n)
}

/** A row of mail.outbox. */
export interface MailRow {
  id: number
  project_id: number
  topic: string
  payload: unknown
  /** As text, because a Date does not have microsecond precision. */
  created_at: string
}

export async function insertMailRow(
  tx: Tx,
  projectId: number,
  topic: string,
  payload: object,
): Promise<void> {
  await sql`
    insert into mail.outbox (project_id, topic, payload)
    values (${projectId}, ${topic}, ${JSON.stringify(payload)}::jsonb)`.execute(tx)
  tx.hint('outbox')
}

/** Without a lock. */
export async function hasMailRows(tx: ReadTx): Promise<boolean> {
  const { rows } = await sql<{ exists: boolean }>`select exists (select from mail.outbox)`.execute(tx)
  return rows[0]?.exists ?? false
}

/**
 * Allows one reader at a time, so that a later read has a later time. Returns false if another transaction holds the lock.
 * The lock is held until the commit.
 */
export async function tryReadLock(tx: ReadTx): Promise<boolean> {
  const { rows } = await sql<{ locked: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended('mail.outbox', 0)) as locked`.execute(tx)
  return rows[0]?.locked ?? false
}

export async function selectMailRows(
  tx: ReadTx,
  topics: readonly string[],
  atMost: number,
): Promise<MailRow[]> {
  const { rows } = await sql<MailRow>`
    select id, project_id, topic, payload, created_at::text from mail.outbox
     where topic = any(${topics}::text[]) order by id limit ${atMost}`.execute(tx)
  return rows
}

export async function deleteMailRows(tx: Tx, ids: readonly number[]): Promise<void> {
  await sql`delete from mail.outbox where id = any(${ids}::bigint[])`.execute(tx)
}
