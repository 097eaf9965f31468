import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { plainName } from '../../shared/text.ts'
import {
  countProjects,
  find,
  insert,
  list,
  listOverLimit,
  lock,
  type PlanRow,
  share,
  update,
} from './plans.sql.ts'
import type { Plan, PlanConfig } from './wire.ts'

export type { PlanRow }

export const planView = (row: PlanRow): Static<typeof Plan> => ({
  id: row.id,
  max_domains: row.max_domains,
  max_users: row.max_users,
  max_mails_per_day: row.max_mails_per_day,
  max_mails_per_month: row.max_mails_per_month,
  name: row.name,
  description: row.description,
  support_level: row.support_level as Static<typeof Plan>['support_level'],
  billing_product_id: row.billing_product_id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  price: row.price,
  is_active: row.is_active,
})

/** The editable fields, as stored in the audit log. */
export const planConfig = (row: PlanRow): PlanConfig => ({
  name: row.name,
  description: row.description,
  support_level: row.support_level as PlanConfig['support_level'],
  max_domains: row.max_domains,
  max_users: row.max_users,
  max_mails_per_day: row.max_mails_per_day,
  max_mails_per_month: row.max_mails_per_month,
  billing_product_id: row.billing_product_id,
  price: row.price,
  is_active: row.is_active,
})

const existing = (row: PlanRow | undefined, id: number): PlanRow => {
  if (!row) throw new PosternError('not_found', `There is no plan ${id}.`)
  return row
}

export const findPlan = async (tx: ReadTx, id: number): Promise<PlanRow> => existing(await find(tx, id), id)
export const lockPlan = async (tx: Tx, id: number): Promise<PlanRow> => existing(await lock(tx, id), id)
export const listPlans = list
export const countProjectsOnPlan = countProjects
export const projectsOverLimit = listOverLimit

export const createPlan = (tx: Tx, config: PlanConfig): Promise<PlanRow> => insert(tx, checked(config))

/** Returns `before` if nothing changes. */
export async function editPlan(tx: Tx, before: PlanRow, change: Partial<PlanConfig>): Promise<PlanRow> {
  const current = planConfig(before)
  const wanted = checked({ ...current, ...change })
  return JSON.stringify(wanted) === JSON.stringify(current) ? before : update(tx, before.id, wanted)
}

/** Returns the plan if it exists and is active. */
export async function requireAssignablePlan(tx: Tx, id: number, field: string): Promise<PlanRow> {
  const plan = await share(tx, id)
  if (!plan) throw new PosternError('validation_failed', `"${field}": plan ${id} does not exist.`)
  if (!plan.is_active) {
    throw new PosternError(
      'plan_inactive',
      `"${field}": plan ${id} is inactive and cannot be assigned. Choose an active plan, or activate this one first.`,
    )
  }
  return plan
}

function checked(config: PlanConfig): PlanConfig {
  // JSON numbers have no scale, and 0.07 * 100 is 7.000000000000001, so the price is compared with its rounded value.
  if (Math.round(config.price * 100) / 100 !== config.price) {
    throw new PosternError('validation_failed', '"price" must have at most two decimal places.')
  }
  return { ...config, name: plainName(config.name, 'name') }
}
