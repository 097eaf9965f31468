import { type Selectable, sql } from 'kysely'
import type { ReadTx, Schema, Tx } from '../../../platform/db/db.ts'
import type { PlanRow } from '../plans/plans.ts'
import type { ProjectConfig } from './wire.ts'

/** A project with its mail statistics and the current plan. */
export interface ProjectRow extends Selectable<Schema['control.projects']> {
  computed_score: number
  score_offset: number
  reputation_score: number
  bounced: number
  failed: number
  complained: number
  plan: PlanRow
}

export type FlatRow = Omit<ProjectRow, 'plan'> & { plan_fields: PlanJson }
type PlanJson = Omit<PlanRow, 'created_at' | 'updated_at'> & { created_at: string; updated_at: string }

export const fields = sql`
  projects.id, projects.user_id, projects.name, projects.is_locked, projects.allow_service_mta, projects.plan_id,
  projects.admin_plan_id, projects.billing_subscription_id, projects.billing_subscription_status,
  projects.billing_product_id, projects.admin_subscription_status, projects.version, projects.created_at,
  projects.updated_at, stats.computed_score, stats.score_offset, stats.reputation_score, stats.bounced, stats.failed, stats.complained,
  to_json(plans) as plan_fields`

export const companions = sql`
  join control.project_stats as stats on stats.project_id = projects.id
  join control.plans as plans on plans.id = coalesce(projects.admin_plan_id, projects.plan_id)`

export const rowOf = ({ plan_fields, ...row }: FlatRow): ProjectRow => ({
  ...row,
  plan: {
    ...plan_fields,
    created_at: new Date(plan_fields.created_at),
    updated_at: new Date(plan_fields.updated_at),
  },
})

export async function find(tx: ReadTx, id: number): Promise<ProjectRow | undefined> {
  const { rows } = await sql<FlatRow>`
    select ${fields} from control.projects as projects ${companions} where projects.id = ${id}`.execute(tx)
  return rows[0] && rowOf(rows[0])
}

export async function exists(tx: ReadTx, id: number): Promise<boolean> {
  const { rows } = await sql`select from control.projects where id = ${id}`.execute(tx)
  return rows.length > 0
}

export async function findNames(tx: ReadTx, ids: readonly number[]): Promise<{ id: number; name: string }[]> {
  const { rows } = await sql<{ id: number; name: string }>`
    select id, name from control.projects where id = any(${ids}::bigint[])`.execute(tx)
  return rows
}

/**
 * Every change to a project or its resources begins with this lock, so only one transaction at a time counts against limits
 * or replaces the owner.
 *
 * After waiting for the lock, PostgreSQL returns the current project joined with the score and plan from before the wait, or
 * no row at all if the current plan has changed. The lock is held by then, so a second read returns current data.
 */
export async function lock(tx: Tx, id: number): Promise<ProjectRow | undefined> {
  const { rows } = await sql<FlatRow & { seen_version: number }>`
    select ${fields}, (select seen.version from control.projects as seen where seen.id = ${id}) as seen_version
    from control.projects as projects ${companions}
    where projects.id = ${id} for no key update of projects`.execute(tx)
  const [found] = rows
  if (!found || found.version !== found.seen_version) return find(tx, id)
  const { seen_version, ...row } = found
  return rowOf(row)
}

/**
 * Increments the version once, even if a lock has already incremented it in this transaction. Does not write `is_locked`:
 * it is derived from the interventions. Returns the new current plan.
 */
export async function update(
  tx: Tx,
  { id, version }: Pick<ProjectRow, 'id' | 'version'>,
  config: ProjectConfig,
): Promise<ProjectRow> {
  const { rows } = await sql<FlatRow>`
    with projects as (
      update control.projects set
        name = ${config.name}, user_id = ${config.user_id},
        allow_service_mta = ${config.allow_service_mta}, plan_id = ${config.plan_id},
        admin_plan_id = ${config.admin_plan_id}, admin_subscription_status = ${config.admin_subscription_status},
        billing_subscription_id = ${config.billing_subscription_id},
        billing_subscription_status = ${config.billing_subscription_status},
        billing_product_id = ${config.billing_product_id},
        version = ${version + 1}, updated_at = postern.now()
      where id = ${id} returning *
    )
    select ${fields} from projects ${companions}`.execute(tx)
  return rowOf(one(rows))
}

/** Stored as a permanent offset to the computed score. */
export async function setScore(tx: Tx, id: number, score: number): Promise<void> {
  await sql`
    update control.project_stats set score_offset = ${score}::smallint - computed_score where project_id = ${id}`.execute(
    tx,
  )
}

export async function setScoreOffset(tx: Tx, id: number, offset: number): Promise<void> {
  await sql`update control.project_stats set score_offset = ${offset} where project_id = ${id}`.execute(tx)
}

export async function insert(tx: Tx, name: string, userId: number, planId: number): Promise<ProjectRow> {
  const { rows } = await sql<FlatRow>`
    with projects as (
      insert into control.projects (name, user_id, plan_id) values (${name}, ${userId}, ${planId}) returning *
    ), stats as (
      insert into control.project_stats (project_id) select id from projects returning *
    )
    select ${fields} from projects
    join stats on stats.project_id = projects.id
    join control.plans as plans on plans.id = projects.plan_id`.execute(tx)
  return rowOf(one(rows))
}

export function one<T>(rows: T[]): T {
  const [row] = rows
  if (row === undefined) throw new Error('the statement returned no project')
  return row
}
