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

/** What customers do with projects themselves; all else about them is an administrator's. */

/** With the number of projects that the owner then has. */
export async function createOwnProject(
  tx: Tx,
  { name, userId, planId }: { name: string; userId: number; planId: number },
): Promise<{ row: ProjectRow; count: number }> {
  const row = await insertOwn(tx, plainName(name, 'name'), userId, planId)
  if (!row) {
    throw new PosternError(
      'plan_inactive',
      'The plan for new projects cannot be assigned at present. Contact an administrator.',
    )
  }
  return { row, count: await countOwn(tx, userId) }
}

export { hasMailWaiting }

export const listProjectsOf = listOfUser

/** The row as it was when the name is the same. */
export async function renameProject(tx: Tx, before: ProjectRow, name: string): Promise<ProjectRow> {
  const wanted = plainName(name, 'name')
  return wanted === before.name ? before : rename(tx, before.id, wanted)
}

/** What would let somebody get away from a lock. */
export function refuseLocked(isLocked: boolean): void {
  if (!isLocked) return
  throw new PosternError(
    'project_locked',
    'This project is locked, so this operation is refused until it is unlocked. Contact the operator of this service.',
  )
}

const words: Record<keyof Remains | 'mail', string> = {
  domains: 'domains',
  endpoints: 'endpoints',
  routes: 'routes',
  apiKeys: 'API keys',
  identities: 'identities that are still being deregistered with their provider, which takes some minutes',
  mail: 'queued mail',
}

/**
 * The transaction's own project, with its members. Its lock is held, and whoever adds to a project takes that first: what
 * is not there now does not come. Mail, asked after before, is none that could be new: it comes under an identity, and one
 * that mail waits under is not forgotten.
 */
export async function deleteProject(
  tx: Tx,
  { id, is_locked }: ProjectRow,
  { hasMail }: { hasMail: boolean },
): Promise<void> {
  refuseLocked(is_locked)
  const left = { ...(await remains(tx, id)), mail: hasMail }
  const names = Object.entries(words).flatMap(([key, word]) =>
    left[key as keyof typeof words] ? [word] : [],
  )
  if (names.length > 0) {
    throw new PosternError(
      'in_use',
      `Project ${id} still has: ${names.join('; ')}. Delete them, or wait until they are gone.`,
    )
  }
  await removeOwn(tx)
}
