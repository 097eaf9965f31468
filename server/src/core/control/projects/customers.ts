import type { Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { plainName } from '../../shared/text.ts'
import {
  countOwn,
  hasMailWaiting,
  insertOwn,
  listOfUser,
  type Remains,
  remains,
  removeOwn,
  rename,
} from './customers.sql.ts'
import type { ProjectRow } from './projects.ts'

/** Customers' operations on projects. All other operations are for administrators. */

/** Also returns how many projects the owner now has. */
export async function createOwnProject(
  tx: Tx,
  { name, userId, planId }: { name: string; userId: number; planId: number },
): Promise<{ row: ProjectRow; count: number }> {
  const row = await insertOwn(tx, plainName(name, 'name'), userId, planId)
  if (!row) {
    throw new PosternError(
      'plan_inactive',
      'The plan for new projects is currently not available. Contact an administrator.',
    )
  }
  return { row, count: await countOwn(tx, userId) }
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
