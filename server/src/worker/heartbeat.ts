import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../platform/db/db.ts'
import { writeHeartbeat } from '../platform/db/replica-age.ts'
import type { Logger } from '../platform/telemetry/log.ts'

/** A fraction of the minimum value of POSTERN_CONTROL_REPLICA_MAX_AGE_SECONDS, ten seconds. */
const defaultEveryMs = 2_000

export interface HeartbeatDeps {
  /** The control database. */
  db: Db
  log: Logger
  /** Shorter in tests. */
  everyMs?: number
}

/**
 * Writes the heartbeat from which cells compute the age of their control replica
 * (platform/db/replica-age.ts), until the signal is aborted. Any number of workers can do this concurrently.
 */
export async function keepHeartbeat(
  { db, log, everyMs = defaultEveryMs }: HeartbeatDeps,
  signal: AbortSignal,
): Promise<void> {
  let isFailing = false
  while (!signal.aborted) {
    try {
      await db.transaction(writeHeartbeat)
      if (isFailing) log.info('the control heartbeat recovered')
      isFailing = false
    } catch (error) {
      // Logged once, however long the database is unavailable.
      if (!isFailing) log.error({ err: error }, 'the control heartbeat could not be written; retrying')
      isFailing = true
    }
    await sleep(everyMs, undefined, { signal }).catch(() => {})
  }
}
