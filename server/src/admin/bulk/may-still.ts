import { shareUser } from '../../core/control/users/users.ts'
import type { Tx } from '../../platform/db/db.ts'
import { allowedRights, type OperationId } from '../rights.ts'

/** Thrown when the administrator who started a bulk action may no longer perform its operation. */
export class RightLost extends Error {
  override readonly name = 'RightLost'
}

/** With the rights to start a bulk action and to perform its operation. */
const mayPerform = (rights: string, operation: string): boolean =>
  [allowedRights['bulk.create'], allowedRights[operation as OperationId]].every((allowed) =>
    (allowed as readonly string[]).includes(rights),
  )

/**
 * The administrator's right to perform an operation, checked in the transaction that performs it. The lock makes a change of
 * the role wait until the end of that transaction.
 */
export async function requireMayStill(tx: Tx, userId: number, operation: string): Promise<void> {
  const user = await shareUser(tx, userId)
  if (user?.is_active && user.role === 'admin' && mayPerform(user.rights, operation)) return
  throw new RightLost(`The administrator who started it may no longer perform ${operation}.`)
}
