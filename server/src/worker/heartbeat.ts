import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../platform/db/db.ts'
import { writeHeartbeat } from '../platform/db/replica-age.ts'
import type { Logger } from '../platform/telemetry/log.ts'

/** A fraction of the smallest POSTERN_CONTROL_REPLICA_MAX_AGE_SECONDS, which is ten seconds. */
const defaultEveryMs = 2_000

export interface HeartbeatDeps {
  /** The control database. */
  db: Db
  log: Logger
  /** Shorter in tests. */
  everyMs?: number
}

/**
 * Writes the heartbeat by which cells know the age of their replica of control (platform/db/replica-age.ts), until the signal
 * is aborted. Any number of workers may do so at once.
 */
export async function keepHeartbeat(
  { db, log, everyMs = defaultEveryMs }: HeartbeatDeps,
  signal: AbortSignal,
): Promise<void> {
  let isFailing = false
  while (!signal.aborted) {
    try {
      await db.transaction(writeHeartbeat)
      if (isFailing) log.info('the heartbeat of control recovered')
      isFailing = false
    } catch (error) {
      // Logged once, however long the database is unavailable.
      if (!isFailing) log.error({ err: error }, 'the heartbeat of control could not be written; retrying')
      isFailing = true
    }
    await sleep(everyMs, undefined, { signal }).catch(() => {})
  }
}
