import { setTimeout as sleep } from 'node:timers/promises'
import { applyExpiries, readDue } from '../core/control/expiries/expiries.ts'
import { endDrained } from '../core/control/interventions/gradual-release.ts'
import { runDiscards } from '../core/mail/dispatch/discards.ts'
import type { MailOf } from '../platform/db/cells.ts'
import type { UnscopedDb } from '../platform/db/db.ts'
import type { Logger } from '../platform/telemetry/log.ts'

export interface ExpiryDeps {
  /** The control database. */
  db: UnscopedDb
  mailOf: MailOf
  /** admin/bulk/perform-bulk.ts, with its dependencies. */
  performBulkActions: (signal: AbortSignal) => Promise<void>
  log: Logger
  /** Shorter in tests. */
  everyMs?: number
}

/** A change that is due is made within five seconds. */
const defaultEveryMs = 4_000

/**
 * Applies expiries in the control database: ends interventions, and restores the values of temporary overrides. Also ends
 * gradual releases, executes discards and performs bulk actions, in the background, because these take longer. Runs until
 * the signal is aborted. Any number of workers can do this concurrently.
 */
export async function runExpiries(
  { db, mailOf, performBulkActions, log, everyMs = defaultEveryMs }: ExpiryDeps,
  signal: AbortSignal,
): Promise<void> {
  const discarding = inBackground(
    () => runDiscards(db, mailOf, signal),
    'queued mail could not be discarded; retrying',
    log,
  )
  const releasing = inBackground(
    () => endDrained(db, mailOf, signal),
    'gradual releases could not be ended; retrying',
    log,
  )
  const bulk = inBackground(
    () => performBulkActions(signal),
    'a bulk action could not be performed; retrying',
    log,
  )
  let isFailing = false
  while (!signal.aborted) {
    try {
      const due = await readDue(db)
      if (due.discards) discarding.start()
      if (due.drains) releasing.start()
      if (due.bulkActions) bulk.start()
      await applyExpiries(db, due, signal)
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
  await Promise.all([discarding.settled(), releasing.settled(), bulk.settled()])
}

/** Runs `work` at most once at the same time. */
function inBackground(work: () => Promise<unknown>, failureText: string, log: Logger) {
  let running: Promise<void> | undefined
  let isFailing = false
  const run = async () => {
    try {
      await work()
      isFailing = false
    } catch (error) {
      if (!isFailing) log.error({ err: error }, failureText)
      isFailing = true
    }
    running = undefined
  }
  return {
    start() {
      running ??= run()
    },
    settled: () => running,
  }
}
