import { planInForce } from '../core/projects/projects.ts'
import type { Tx } from '../platform/db/db.ts'
import { PosternError } from '../platform/errors.ts'

/** The limits of the plan in force: here no reason goes past them. `count` is what the project would then have. */
export async function requireRoom(
  tx: Tx,
  projectId: number,
  limit: 'max_domains' | 'max_users',
  count: number,
): Promise<void> {
  // As it is now: the project's row may have been waited for.
  const plan = await planInForce(tx, projectId)
  if (count <= plan[limit]) return
  throw new PosternError(
    'limit_exceeded',
    `The plan in force allows ${plan[limit]} (${limit}), and this would be number ${count}. ` +
      'Remove one first, or have the plan changed.',
  )
}
