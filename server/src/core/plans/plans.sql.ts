import { type Selectable, sql } from 'kysely'
import type { ReadTx, Schema, Tx } from '../../platform/db/db.ts'
import type { PlanConfig } from './wire.ts'

export type PlanRow = Selectable<Schema['control.plans']>

export const find = (tx: ReadTx, id: number): Promise<PlanRow | undefined> =>
  tx.selectFrom('control.plans').selectAll().where('id', '=', id).executeTakeFirst()

export const lock = (tx: Tx, id: number): Promise<PlanRow | undefined> =>
  tx.selectFrom('control.plans').selectAll().where('id', '=', id).forNoKeyUpdate().executeTakeFirst()

/** Against being made inactive or changed while it is being assigned. */
export const share = (tx: Tx, id: number): Promise<PlanRow | undefined> =>
  tx.selectFrom('control.plans').selectAll().where('id', '=', id).forShare().executeTakeFirst()

export const insert = (tx: Tx, config: PlanConfig): Promise<PlanRow> =>
  tx.insertInto('control.plans').values(config).returningAll().executeTakeFirstOrThrow()

export const update = (tx: Tx, id: number, config: PlanConfig): Promise<PlanRow> =>
  tx
    .updateTable('control.plans')
    .set((eb) => ({ ...config, version: eb('version', '+', 1), updated_at: sql<Date>`postern.now()` }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()

export function list(
  tx: ReadTx,
  { isActive, limit, afterId }: { isActive: boolean | undefined; limit: number; afterId: number },
): Promise<PlanRow[]> {
  let query = tx.selectFrom('control.plans').selectAll().where('id', '>', afterId).orderBy('id').limit(limit)
  if (isActive !== undefined) query = query.where('is_active', '=', isActive)
  return query.execute()
}

/** Projects for which this plan is the one in force. */
export async function countProjects(tx: ReadTx, id: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select (select count(*) from control.projects where admin_plan_id = ${id})
         + (select count(*) from control.projects where plan_id = ${id} and admin_plan_id is null) as count`.execute(
    tx,
  )
  return rows[0]?.count ?? 0
}
