import { type Selectable, sql } from 'kysely'
import type { OneStatement, ReadTx, Schema, Tx } from '../../../platform/db/db.ts'

export type DiscardRow = Selectable<Schema['control.discards']>
export type NewDiscard = Pick<
  DiscardRow,
  'older_than' | 'tag' | 'recipient_domain' | 'accepted_before' | 'matched' | 'reason'
>

const one = (rows: DiscardRow[]): DiscardRow => {
  const [row] = rows
  if (!row) throw new Error('the statement returned no discard')
  return row
}

export async function insert(
  tx: Tx,
  projectId: number,
  { older_than, tag, recipient_domain, accepted_before, matched, reason }: NewDiscard,
): Promise<DiscardRow> {
  const { rows } = await sql<DiscardRow>`
    insert into control.discards (project_id, older_than, tag, recipient_domain, accepted_before, matched, reason)
    values (${projectId}, ${older_than}, ${tag}, ${recipient_domain}, ${accepted_before}, ${matched}, ${reason})
    returning *`.execute(tx)
  return one(rows)
}

export async function find(tx: ReadTx, projectId: number, id: number): Promise<DiscardRow | undefined> {
  const { rows } = await sql<DiscardRow>`
    select * from control.discards where project_id = ${projectId} and id = ${id}`.execute(tx)
  return rows[0]
}

/** The lock keeps a worker from finishing the discard at the same time. */
export async function lock(tx: Tx, projectId: number, id: number): Promise<DiscardRow | undefined> {
  const { rows } = await sql<DiscardRow>`
    select * from control.discards where project_id = ${projectId} and id = ${id} for update`.execute(tx)
  return rows[0]
}

export async function listByProject(
  tx: ReadTx,
  projectId: number,
  { limit, beforeId }: { limit: number; beforeId: number },
): Promise<DiscardRow[]> {
  const { rows } = await sql<DiscardRow>`
    select * from control.discards
     where project_id = ${projectId} and id < ${beforeId} order by id desc limit ${limit}`.execute(tx)
  return rows
}

export async function findRunning(tx: ReadTx, projectId: number): Promise<DiscardRow | undefined> {
  const { rows } = await sql<DiscardRow>`
    select * from control.discards
     where project_id = ${projectId} and stopped_at is null and finished_at is null`.execute(tx)
  return rows[0]
}

/** The running discards of all projects, the oldest first. */
export async function listRunning(tx: ReadTx): Promise<DiscardRow[]> {
  const { rows } = await sql<DiscardRow>`
    select * from control.discards where stopped_at is null and finished_at is null order by id`.execute(tx)
  return rows
}

export async function writeStopped(tx: Tx, { id }: DiscardRow, isStopped: boolean): Promise<DiscardRow> {
  const { rows } = await sql<DiscardRow>`
    update control.discards
       set stopped_at = ${isStopped ? sql`postern.now()` : sql`null`}, updated_at = postern.now()
     where id = ${id} returning *`.execute(tx)
  return one(rows)
}

export async function writeFinished(tx: Tx, id: number, at: Date): Promise<void> {
  await sql`
    update control.discards set finished_at = ${at}, updated_at = postern.now()
     where id = ${id} and finished_at is null`.execute(tx)
}

export async function deleteOld(tx: OneStatement, days: number, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from control.discards where ctid = any(array(
      select ctid from control.discards
       where (stopped_at is not null or finished_at is not null)
         and updated_at < postern.now() - ${days} * interval '1 day'
       limit ${limit} for update skip locked))
    returning true`.execute(tx)
  return rows.length
}
