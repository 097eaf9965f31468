import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { deleteBrake, insertBrake, listBrakeRows } from './dispatch-holds.sql.ts'

/**
 * What an operator holds at the shell: all mail, or what goes by one provider. Like a project's hold it is a row that
 * the worker looks at when it claims, so it takes effect at once and nothing in the queue is written. Mail that is leaving
 * at that moment goes on; what is held for 7 days fails.
 */
export const brakeScopes = ['all', 'service', 'ses'] as const
export type BrakeScope = (typeof brakeScopes)[number]

export interface Brake {
  scope: BrakeScope
  held_at: string
}

/** False when it is held already. */
export const applyBrake = (tx: Tx, scope: BrakeScope): Promise<boolean> => insertBrake(tx, scope)

/** False when it was not held. */
export const releaseBrake = (tx: Tx, scope: BrakeScope): Promise<boolean> => deleteBrake(tx, scope)

export const listBrakes = async (tx: ReadTx): Promise<Brake[]> =>
  (await listBrakeRows(tx)).map(({ scope, held_at }) => ({
    scope: scope as BrakeScope,
    held_at: held_at.toISOString(),
  }))
