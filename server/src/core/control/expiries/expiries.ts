import type { UnscopedDb } from '../../../platform/db/db.ts'
import { endExpired } from '../interventions/expiry.ts'
import { revertDue } from '../reversals/due.ts'
import { findDue } from './expiries.sql.ts'

/** Ends the interventions that have expired, and restores the values of expired overrides. A failure of one does not stop the other. */
export async function applyExpiries(db: UnscopedDb, signal: AbortSignal): Promise<void> {
  const due = await db.readOne(findDue)
  let failure: unknown
  for (const [isDue, apply] of [
    [due.interventions, endExpired],
    [due.reversals, revertDue],
  ] as const) {
    if (isDue) await apply(db, signal).catch((error: unknown) => (failure ??= error))
  }
  if (failure !== undefined) throw failure
}
