import { beyond, type Caps, countProjectsOf, type LimitException } from '../../core/control/caps/caps.ts'
import { countMembers, type RoleChange } from '../../core/control/members/members.ts'
import type { ProjectRow } from '../../core/control/projects/projects.ts'
import type { Tx } from '../../platform/db/db.ts'

/** A new owner owns one more project. If they were not a member, the project has one more member. */
export async function ownerBeyondLimit(
  tx: Tx,
  caps: Caps,
  { id, user_id, plan }: ProjectRow,
  members: RoleChange[],
): Promise<LimitException | null> {
  if (members.length === 0) return null
  const { max_projects_per_owner: most } = caps
  const owned = beyond('max_projects_per_owner', most, await countProjectsOf(tx, user_id))
  if (owned || !members.some(({ before }) => before === null)) return owned
  return beyond('max_users', plan.max_users, await countMembers(tx, id))
}
