import {
  beyond,
  type CapName,
  type Caps,
  limitExceeded,
  type ProjectCapName,
  projectBeyond,
} from '../core/control/caps/caps.ts'
import { invitationsBeyond } from '../core/control/members/invitations.ts'
import { planInForce } from '../core/control/projects/projects.ts'
import type { Tx } from '../platform/db/db.ts'

/** The limits of the plan in force: here no reason goes past them. `count` is what the project would then have. */
export async function requireRoom(
  tx: Tx,
  projectId: number,
  limit: 'max_domains' | 'max_users',
  count: number,
): Promise<void> {
  // As it is now: the project's row may have been waited for.
  const plan = await planInForce(tx, projectId)
  const exception = beyond(limit, plan[limit], count)
  if (exception) throw limitExceeded(exception, 'Remove one first, or have the plan changed.')
}

/** The same for a cap of the installation; what was just created is counted. The project must be locked. */
export async function requireProjectCap(
  tx: Tx,
  caps: Caps,
  limit: ProjectCapName,
  projectId: number,
): Promise<void> {
  const exception = await projectBeyond(tx, caps, limit, projectId)
  if (exception) throw limitExceeded(exception, 'Remove one first, or ask the operator for more.')
}

/** The invitation that was just made, against the caps of a day. */
export async function requireInvitationCaps(
  tx: Tx,
  caps: Caps,
  projectId: number,
  userId: number,
  email: string,
): Promise<void> {
  const exception = await invitationsBeyond(tx, caps, projectId, userId, email)
  if (exception) throw limitExceeded(exception, 'Wait until tomorrow (UTC), or ask the operator for more.')
}

export const dkimKeysRemedy = 'Wait until tomorrow (UTC), or ask the operator for more.'

/** DKIM keys that the project has made today, the new one included; null: none was made. */
export function requireDkimKeys(caps: Caps, keysToday: number | null): void {
  requireCap(caps, 'max_dkim_keys_per_day', keysToday ?? 0, dkimKeysRemedy)
}

export function requireCap(caps: Caps, limit: CapName, count: number, remedy: string): void {
  const exception = beyond(limit, caps[limit], count)
  if (exception) throw limitExceeded(exception, remedy)
}
