import { type Selectable, sql } from 'kysely'
import type { ReadTx, Schema, Tx } from '../../../platform/db/db.ts'
import type { BulkRefusal } from './wire.ts'

type Columns = Selectable<Schema['control.bulk_actions']>

export interface BulkRow extends Columns {
  started_by_email: string
}

export interface NewBulk extends Pick<BulkRow, 'id' | 'operation' | 'reason' | 'started_by' | 'request_id'> {
  filter: object | null
  body: object
}

export type ItemResult = 'changed' | 'unchanged' | 'refused'

const one = (rows: BulkRow[]): BulkRow => {
  const [row] = rows
  if (!row) throw new Error('the statement returned no bulk action')
  return row
}

const email = sql`(select email from control.users where id = started_by) as started_by_email`

const isRunning = sql`stopped_at is null and finished_at is null`

export async function insert(
  tx: Tx,
  { id, operation, filter, body, reason, started_by, request_id }: NewBulk,
  projectIds: readonly number[],
): Promise<BulkRow> {
  const { rows } = await sql<BulkRow>`
    insert into control.bulk_actions (id, operation, filter, body, reason, started_by, request_id, matched)
    values (${id}, ${operation}, ${filter === null ? null : JSON.stringify(filter)}, ${JSON.stringify(body)}, ${reason},
            ${started_by}, ${request_id}, ${projectIds.length})
    returning *, ${email}`.execute(tx)
  await sql`
    insert into control.bulk_items (bulk_id, project_id)
    select ${id}, project_id from unnest(${projectIds}::bigint[]) as project_id`.execute(tx)
  return one(rows)
}

export async function find(tx: ReadTx, id: string): Promise<BulkRow | undefined> {
  const { rows } = await sql<BulkRow>`
    select *, ${email} from control.bulk_actions where id = ${id}`.execute(tx)
  return rows[0]
}

/** Waits for the change that a worker is making. */
export async function lock(tx: Tx, id: string): Promise<BulkRow | undefined> {
  const { rows } = await sql<BulkRow>`
    select *, ${email} from control.bulk_actions where id = ${id} for no key update`.execute(tx)
  return rows[0]
}

/** Undefined if the bulk action is not running, or another worker is performing it. */
export async function lockRunning(tx: Tx, id: string): Promise<BulkRow | undefined> {
  const { rows } = await sql<BulkRow>`
    select *, ${email} from control.bulk_actions
     where id = ${id} and ${isRunning} for no key update skip locked`.execute(tx)
  return rows[0]
}

/** Newest first. */
export async function list(
  tx: ReadTx,
  { limit, before }: { limit: number; before: string | undefined },
): Promise<BulkRow[]> {
  const { rows } = await sql<BulkRow>`
    select *, ${email} from control.bulk_actions
     where ${before === undefined ? sql`true` : sql`id < ${before}::uuid`}
     order by id desc limit ${limit}`.execute(tx)
  return rows
}

/** The running bulk actions, the oldest first. */
export async function listRunning(tx: ReadTx): Promise<BulkRow[]> {
  const { rows } = await sql<BulkRow>`
    select *, ${email} from control.bulk_actions where ${isRunning} order by id`.execute(tx)
  return rows
}

export async function findRunningOf(tx: ReadTx, userId: number): Promise<{ id: string } | undefined> {
  const { rows } = await sql<{ id: string }>`
    select id from control.bulk_actions where started_by = ${userId} and ${isRunning}`.execute(tx)
  return rows[0]
}

/** What was started in the last 24 hours. */
export async function countRecent(tx: ReadTx): Promise<{ actions: number; items: number }> {
  const { rows } = await sql<{ actions: number; items: number }>`
    select count(*) as actions, coalesce(sum(matched), 0)::bigint as items from control.bulk_actions
     where created_at > postern.now() - interval '24 hours'`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('the count returned no row')
  return row
}

export async function writeStopped(
  tx: Tx,
  id: string,
  because: 'administrator' | 'rights' | null,
): Promise<BulkRow> {
  const { rows } = await sql<BulkRow>`
    update control.bulk_actions
       set stopped_at = ${because === null ? sql`null` : sql`postern.now()`}, stopped_because = ${because},
           updated_at = postern.now()
     where id = ${id} returning *, ${email}`.execute(tx)
  return one(rows)
}

/** The caller holds the lock. Does nothing if an item is pending. */
export async function finishIfDone(tx: Tx, id: string): Promise<void> {
  await sql`
    update control.bulk_actions set finished_at = postern.now(), updated_at = postern.now()
     where id = ${id} and ${isRunning}
       and not exists (select from control.bulk_items where bulk_id = ${id} and state = 'pending')`.execute(
    tx,
  )
}

/** The next pending items, by project. */
export async function listPending(
  tx: ReadTx,
  id: string,
  { after, limit }: { after: number; limit: number },
): Promise<number[]> {
  const { rows } = await sql<{ project_id: number }>`
    select project_id from control.bulk_items
     where bulk_id = ${id} and state = 'pending' and project_id > ${after}
     order by project_id limit ${limit}`.execute(tx)
  return rows.map(({ project_id }) => project_id)
}

/** False if the item is no longer pending. */
export async function lockPending(tx: Tx, id: string, projectId: number): Promise<boolean> {
  const { rows } = await sql`
    select from control.bulk_items
     where bulk_id = ${id} and project_id = ${projectId} and state = 'pending' for no key update`.execute(tx)
  return rows.length > 0
}

/** The caller has locked the bulk action and the item. */
export async function writeItem(
  tx: Tx,
  id: string,
  projectId: number,
  { state, error, message }: { state: ItemResult; error: string | null; message: string | null },
): Promise<void> {
  await sql`
    with item as (
      update control.bulk_items set state = ${state}, error = ${error}, message = ${message}
       where bulk_id = ${id} and project_id = ${projectId}
    )
    update control.bulk_actions
       set ${sql.ref(state)} = ${sql.ref(state)} + 1, updated_at = postern.now()
     where id = ${id}`.execute(tx)
}

export async function listRefused(tx: ReadTx, id: string, limit: number): Promise<BulkRefusal[]> {
  const { rows } = await sql<BulkRefusal>`
    select items.project_id, items.error, items.message, projects.name as project_name
      from control.bulk_items as items left join control.projects as projects on projects.id = items.project_id
     where items.bulk_id = ${id} and items.state = 'refused'
     order by items.project_id limit ${limit}`.execute(tx)
  return rows
}

const isOld = (days: number) => sql`
  not (${isRunning}) and updated_at < postern.now() - ${days} * interval '1 day'`

/** Items first, in bounded steps: a bulk action can have many. */
export async function deleteOld(tx: Tx, days: number, limit: number): Promise<number> {
  const { rows: items } = await sql`
    delete from control.bulk_items where ctid = any(array(
      select items.ctid from control.bulk_actions as old cross join lateral (
        select ctid from control.bulk_items where bulk_id = old.id limit ${limit}) as items
       where ${isOld(days)} limit ${limit}))
    returning true`.execute(tx)
  if (items.length >= limit) return items.length
  await sql`delete from control.bulk_actions where ${isOld(days)}`.execute(tx)
  return items.length
}
