/**
 * Holds that an operator sets on the command line: for all mail, or for one provider's mail. Like a project's hold, such a
 * hold is a row that the worker reads when it claims messages, so it takes effect immediately and no queue row is written.
 * Messages that are being sent at that moment are not stopped. Messages held for 7 days fail.
 */

import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { deleteDispatchHold, insertDispatchHold, listDispatchHoldRows } from './global-holds.sql.ts'

export const holdScopes = ['all', 'service', 'ses'] as const
export type HoldScope = (typeof holdScopes)[number]

export interface DispatchHold {
  scope: HoldScope
  held_at: string
}

/** False if the mail is already held. */
export const holdDispatch = (tx: Tx, scope: HoldScope): Promise<boolean> => insertDispatchHold(tx, scope)

/** False if the mail was not held. */
export function releaseDispatch(tx: Tx, scope: HoldScope): Promise<boolean> {
  tx.hint('mail')
  return deleteDispatchHold(tx, scope)
}

export const listDispatchHolds = async (tx: ReadTx): Promise<DispatchHold[]> =>
  (await listDispatchHoldRows(tx)).map(({ scope, held_at }) => ({
    scope: scope as HoldScope,
    held_at: held_at.toISOString(),
  }))
