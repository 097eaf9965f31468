import { setTimeout as sleep } from 'node:timers/promises'
import { applyExpiries } from '../core/control/expiries/expiries.ts'
import type { UnscopedDb } from '../platform/db/db.ts'
import type { Logger } from '../platform/telemetry/log.ts'

export interface ExpiryDeps {
  /** The control database. */
  db: UnscopedDb
  log: Logger
  /** Shorter in tests. */
  everyMs?: number
}

/** A change that is due is made within five seconds. */
const defaultEveryMs = 4_000

/**
 * Applies expiries in the control database: ends interventions, and restores the values of temporary
 * overrides. Runs until the signal is aborted. Any number of workers can do this concurrently.
 */
export async function runExpiries(
  { db, log, everyMs = defaultEveryMs }: ExpiryDeps,
  signal: AbortSignal,
): Promise<void> {
  let isFailing = false
  while (!signal.aborted) {
    try {
      await applyExpiries(db, signal)
      if (isFailing) log.info('expiries recovered')
      isFailing = false
    } catch (error) {
      // Logged once, however long the database is unavailable.
      if (!isFailing)
        log.error({ err: error }, 'expired interventions and overrides could not be ended; retrying')
      isFailing = true
    }
    await sleep(everyMs, undefined, { signal }).catch(() => {})
  }
}
