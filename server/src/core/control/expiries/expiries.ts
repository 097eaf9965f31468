import type { UnscopedDb } from '../../../platform/db/db.ts'
import { endExpired } from '../interventions/expiry.ts'
import { revertDue } from '../reversals/due.ts'
import { findDue } from './expiries.sql.ts'

/** Ends the interventions that have expired, and restores the values of expired overrides. */
export async function applyExpiries(db: UnscopedDb, signal: AbortSignal): Promise<void> {
  const due = await db.readOne(findDue)
  if (due.interventions) await endExpired(db, signal)
  if (due.reversals) await revertDue(db, signal)
}
