import type { UnscopedDb } from '../../../platform/db/db.ts'
import { endExpired } from '../interventions/expiry.ts'
import { revertDue } from '../reversals/due.ts'
import { type Due, findDue } from './expiries.sql.ts'

export const readDue = (db: UnscopedDb): Promise<Due> => db.readOne(findDue)

/** Ends the interventions that have expired, and restores the values of expired overrides. A failure of one does not stop the other. */
export async function applyExpiries(db: UnscopedDb, due: Due, signal: AbortSignal): Promise<void> {
  let failure: unknown
  for (const [isDue, apply] of [
    [due.interventions, () => endExpired(db, signal)],
    [due.reversals, () => revertDue(db, signal)],
  ] as const) {
    if (isDue) await apply().catch((error: unknown) => (failure ??= error))
  }
  if (failure !== undefined) throw failure
}
