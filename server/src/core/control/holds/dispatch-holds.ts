import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { deleteBrake, insertBrake, listBrakeRows } from './dispatch-holds.sql.ts'

/**
 * What an operator holds at the shell: all mail, or what goes by one provider. Like a project's hold it is a row that
 * the worker looks at when it claims, so it takes effect at once and nothing in the queue is written. Mail that is leaving
 * at that moment goes on; what is held for 7 days fails.
 */
export const holdScopes = ['all', 'service', 'ses'] as const
export type HoldScope = (typeof holdScopes)[number]

export interface DispatchHold {
  scope: HoldScope
  held_at: string
}

/** False when it is held already. */
export const holdDispatch = (tx: Tx, scope: HoldScope): Promise<boolean> => insertBrake(tx, scope)

/** False when it was not held. */
export const releaseDispatch = (tx: Tx, scope: HoldScope): Promise<boolean> => deleteBrake(tx, scope)

export const listDispatchHolds = async (tx: ReadTx): Promise<DispatchHold[]> =>
  (await listBrakeRows(tx)).map(({ scope, held_at }) => ({
    scope: scope as HoldScope,
    held_at: held_at.toISOString(),
  }))
