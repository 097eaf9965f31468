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

/**
 * Enforces one of the current plan's limits. Customers cannot exceed these limits. `count` includes the new
 * resource.
 */
export async function requireRoom(
  tx: Tx,
  projectId: number,
  limit: 'max_domains' | 'max_users',
  count: number,
): Promise<void> {
  // Read again: the plan may have changed while the transaction waited for the project's lock.
  const plan = await planInForce(tx, projectId)
  const exception = beyond(limit, plan[limit], count)
  if (exception) throw limitExceeded(exception, 'Delete one first, or change the plan.')
}

/** Enforces one of the installation's caps. The new resource is counted. The project must be locked. */
export async function requireProjectCap(
  tx: Tx,
  caps: Caps,
  limit: ProjectCapName,
  projectId: number,
): Promise<void> {
  const exception = await projectBeyond(tx, caps, limit, projectId)
  if (exception) throw limitExceeded(exception, 'Delete one first, or ask the operator to raise the limit.')
}

/** Enforces the daily caps on invitations. The new invitation is counted. */
export async function requireInvitationCaps(
  tx: Tx,
  caps: Caps,
  projectId: number,
  userId: number,
  email: string,
): Promise<void> {
  const exception = await invitationsBeyond(tx, caps, projectId, userId, email)
  if (exception)
    throw limitExceeded(exception, 'Wait until tomorrow (UTC), or ask the operator to raise the limit.')
}

export const dkimKeysRemedy = 'Wait until tomorrow (UTC), or ask the operator to raise the limit.'

/** `keysToday`: the number of DKIM keys generated today, including the new one, or null if no key was generated. */
export function requireDkimKeys(caps: Caps, keysToday: number | null): void {
  requireCap(caps, 'max_dkim_keys_per_day', keysToday ?? 0, dkimKeysRemedy)
}

export function requireCap(caps: Caps, limit: CapName, count: number, remedy: string): void {
  const exception = beyond(limit, caps[limit], count)
  if (exception) throw limitExceeded(exception, remedy)
}
