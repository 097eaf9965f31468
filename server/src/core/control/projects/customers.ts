import type { Static } from 'typebox'
import type { Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { plainName } from '../../shared/text.ts'
import type { Role } from '../members/wire.ts'
import { type PlanRow, planView } from '../plans/plans.ts'
import {
  countOwn,
  hasMailWaiting,
  insertOwn,
  listOfUser,
  type NewOwnProject,
  type Remains,
  remains,
  removeOwn,
  rename,
} from './customers.sql.ts'
import type { ProjectRow } from './projects.ts'
import type { CustomerProject } from './wire.ts'

/** Customers' operations on projects. All other operations are for administrators. */

/** Without what only concerns the operator: overrides, and the ids of the billing system. */
export const customerProjectView = (row: ProjectRow, role: string): Static<typeof CustomerProject> => ({
  id: row.id,
  name: row.name,
  user_id: row.user_id,
  role: role as Role,
  is_locked: row.is_locked,
  allow_service_mta: row.allow_service_mta,
  reputation_score: row.reputation_score,
  plan: customerPlanView(row.plan),
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

function customerPlanView(row: PlanRow): Static<typeof CustomerProject>['plan'] {
  const { billing_product_id, price, is_active, created_at, updated_at, ...shown } = planView(row)
  return shown
}

/** Also returns how many projects the owner now has. */
export async function createOwnProject(
  tx: Tx,
  project: NewOwnProject,
): Promise<{ row: ProjectRow; count: number }> {
  const row = await insertOwn(tx, { ...project, name: plainName(project.name, 'name') })
  if (!row) {
    throw new PosternError(
      'plan_inactive',
      'The plan for new projects is currently not available. Contact an administrator.',
    )
  }
  return { row, count: await countOwn(tx, project.userId) }
}

export { hasMailWaiting }

export const listProjectsOf = listOfUser

/** Returns `before` if the name does not change. */
export async function renameProject(tx: Tx, before: ProjectRow, name: string): Promise<ProjectRow> {
  const wanted = plainName(name, 'name')
  return wanted === before.name ? before : rename(tx, before.id, wanted)
}

/** Guards operations that would allow a customer to evade a lock. */
export function refuseLocked(isLocked: boolean): void {
  if (!isLocked) return
  throw new PosternError(
    'project_locked',
    'This operation is not available while the project is locked. Contact the operator of this service.',
  )
}

const labels: Record<keyof Remains | 'mail', string> = {
  domains: 'domains',
  endpoints: 'endpoints',
  routes: 'routes',
  apiKeys: 'API keys',
  identities: 'identities that are still being deregistered with their provider (this takes a few minutes)',
  mail: 'queued mail',
}

/**
 * Deletes the transaction's project and its members. The caller holds the lock on the project, and adding a resource
 * requires that lock, so no resource can appear after the check. Mail was checked before the transaction, but new mail
 * requires an identity, and an identity with queued mail is not deleted.
 */
export async function deleteProject(
  tx: Tx,
  { id, is_locked }: ProjectRow,
  { hasMail }: { hasMail: boolean },
): Promise<void> {
  refuseLocked(is_locked)
  const left = { ...(await remains(tx, id)), mail: hasMail }
  const names = Object.entries(labels).flatMap(([key, label]) =>
    left[key as keyof typeof labels] ? [label] : [],
  )
  if (names.length > 0) {
    throw new PosternError(
      'in_use',
      `Project ${id} still has: ${names.join('; ')}. Delete them, or wait until they have been removed.`,
    )
  }
  await removeOwn(tx)
}
