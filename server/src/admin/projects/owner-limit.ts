import { countMembers, type RoleChange } from '../../core/members/members.ts'
import type { ProjectRow } from '../../core/projects/projects.ts'
import type { Tx } from '../../platform/db/db.ts'
import type { LimitException } from '../operation.ts'

/** An owner who was no member before is one more, as if added. */
export async function ownerBeyondLimit(
  tx: Tx,
  { id, plan }: ProjectRow,
  members: RoleChange[],
): Promise<LimitException | null> {
  if (!members.some(({ before }) => before === null)) return null
  const count = await countMembers(tx, id)
  return count > plan.max_users ? { limit: 'max_users', value: plan.max_users, count } : null
}
