import { type Selectable, sql } from 'kysely'
import type { ReadTx, Schema, Tx } from '../../../platform/db/db.ts'
import type { InterventionKind } from '../interventions/wire.ts'
import type { PolicyMode, Signal } from './wire.ts'

type Stored = Selectable<Schema['control.policies']>

export interface PolicyRow extends Omit<Stored, 'mode' | 'signal' | 'kind'> {
  mode: PolicyMode
  signal: Signal
  kind: InterventionKind
}

export type PolicyColumns = Omit<PolicyRow, 'id' | 'version' | 'created_at' | 'updated_at'>

const one = (rows: PolicyRow[]): PolicyRow => {
  const [row] = rows
  if (!row) throw new Error('the statement returned no policy')
  return row
}

/**
 * Serializes all changes of policies until the transaction ends, because names are unique and the number is limited. The
 * evaluation takes it too. Reads do not wait.
 */
export async function lockTable(tx: Tx): Promise<void> {
  await sql`lock table control.policies in share row exclusive mode`.execute(tx)
}

export async function find(tx: ReadTx, id: number): Promise<PolicyRow | undefined> {
  const { rows } = await sql<PolicyRow>`select * from control.policies where id = ${id}`.execute(tx)
  return rows[0]
}

export async function findByName(tx: ReadTx, name: string): Promise<PolicyRow | undefined> {
  const { rows } = await sql<PolicyRow>`select * from control.policies where name = ${name}`.execute(tx)
  return rows[0]
}

/** In the order in which they were created. */
export async function listAll(tx: ReadTx): Promise<PolicyRow[]> {
  const { rows } = await sql<PolicyRow>`select * from control.policies order by id`.execute(tx)
  return rows
}

export async function list(
  tx: ReadTx,
  { mode, limit, afterId }: { mode: PolicyMode | undefined; limit: number; afterId: number },
): Promise<PolicyRow[]> {
  const { rows } = await sql<PolicyRow>`
    select * from control.policies
     where id > ${afterId} ${mode === undefined ? sql`` : sql`and mode = ${mode}`}
     order by id limit ${limit}`.execute(tx)
  return rows
}

export async function count(tx: ReadTx): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from control.policies`.execute(tx)
  return rows[0]?.count ?? 0
}

export async function insert(tx: Tx, columns: PolicyColumns): Promise<PolicyRow> {
  const row = await tx.insertInto('control.policies').values(columns).returningAll().executeTakeFirstOrThrow()
  return row as PolicyRow
}

export async function update(tx: Tx, id: number, columns: PolicyColumns): Promise<PolicyRow> {
  const row = await tx
    .updateTable('control.policies')
    .set((eb) => ({ ...columns, version: eb('version', '+', 1), updated_at: sql<Date>`postern.now()` }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  return row as PolicyRow
}

export async function updateMode(
  tx: Tx,
  id: number,
  { mode, tripped_at }: Pick<PolicyRow, 'mode' | 'tripped_at'>,
): Promise<PolicyRow> {
  const { rows } = await sql<PolicyRow>`
    update control.policies
       set mode = ${mode}, tripped_at = ${tripped_at}, version = version + 1, updated_at = postern.now()
     where id = ${id} returning *`.execute(tx)
  return one(rows)
}

/** Also deletes its firings. */
export async function remove(tx: Tx, id: number): Promise<void> {
  await sql`delete from control.policies where id = ${id}`.execute(tx)
}

/** Returns the ids that do not belong to a plan. */
export async function listMissingPlans(tx: ReadTx, ids: readonly number[]): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select wanted.id from unnest(${ids}::bigint[]) as wanted (id)
     where not exists (select from control.plans where plans.id = wanted.id) order by 1`.execute(tx)
  return rows.map(({ id }) => id)
}
