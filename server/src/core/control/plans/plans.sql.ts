import { type Selectable, sql } from 'kysely'
import type { ReadTx, Schema, Tx } from '../../../platform/db/db.ts'
import type { PlanConfig } from './wire.ts'

export type PlanRow = Selectable<Schema['control.plans']>

export const find = (tx: ReadTx, id: number): Promise<PlanRow | undefined> =>
  tx.selectFrom('control.plans').selectAll().where('id', '=', id).executeTakeFirst()

export const lock = (tx: Tx, id: number): Promise<PlanRow | undefined> =>
  tx.selectFrom('control.plans').selectAll().where('id', '=', id).forNoKeyUpdate().executeTakeFirst()

/** Locks the plan against edits while it is being assigned. */
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

export interface OverLimit {
  project_id: number
  members: number
  domains: number
}

/** Projects on this plan that currently exceed its limits, at most `limit`. */
export async function listOverLimit(tx: ReadTx, id: number, limit: number): Promise<OverLimit[]> {
  const { rows } = await sql<OverLimit>`
    select project_id, member_count as members, domain_count as domains from (
      select listing.* from control.plans as plans
        join control.project_listing as listing
          on listing.plan_id = plans.id and listing.member_count > plans.max_users
       where plans.id = ${id}
      union
      select listing.* from control.plans as plans
        join control.project_listing as listing
          on listing.plan_id = plans.id and listing.domain_count > plans.max_domains
       where plans.id = ${id}
    ) as listing order by project_id limit ${limit}`.execute(tx)
  return rows
}

/** Counts the projects for which this is the current plan. */
export async function countProjects(tx: ReadTx, id: number): Promise<number> {
  const { count } = await tx
    .selectFrom('control.project_listing')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('plan_id', '=', id)
    .executeTakeFirstOrThrow()
  return count
}
