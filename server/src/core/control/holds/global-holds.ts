/**
 * Holds that an operator sets on the command line: all mail, or the mail of one provider. Like a project's hold, it is a
 * row that the worker reads when it claims, so it takes effect at once and no queue row is written. Mail being sent at
 * that moment is not stopped; mail held for 7 days fails.
 */

import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { deleteDispatchHold, insertDispatchHold, listDispatchHoldRows } from './global-holds.sql.ts'

export const holdScopes = ['all', 'service', 'ses'] as const
export type HoldScope = (typeof holdScopes)[number]

export interface DispatchHold {
  scope: HoldScope
  held_at: string
}

/** False when it is held already. */
export const holdDispatch = (tx: Tx, scope: HoldScope): Promise<boolean> => insertDispatchHold(tx, scope)

/** False when it was not held. */
export const releaseDispatch = (tx: Tx, scope: HoldScope): Promise<boolean> => deleteDispatchHold(tx, scope)

export const listDispatchHolds = async (tx: ReadTx): Promise<DispatchHold[]> =>
  (await listDispatchHoldRows(tx)).map(({ scope, held_at }) => ({
    scope: scope as HoldScope,
    held_at: held_at.toISOString(),
  }))
