import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../platform/db/db.ts'
import { writeHeartbeat } from '../platform/db/replica-age.ts'
import type { Logger } from '../platform/telemetry/log.ts'

/** A small part of the shortest POSTERN_CONTROL_COPY_MAX_AGE_SECONDS, which is ten seconds. */
const usualEveryMs = 2_000

export interface HeartbeatDeps {
  /** Control's. */
  db: Db
  log: Logger
  /** Shorter in tests. */
  everyMs?: number
}

/**
 * Writes the heartbeat from whose age cells know how old their copy of control is (platform/db/replica-age.ts), until told to
 * stop. Any number of workers may do so at once.
 */
export async function keepHeartbeat(
  { db, log, everyMs = usualEveryMs }: HeartbeatDeps,
  signal: AbortSignal,
): Promise<void> {
  let isFailing = false
  while (!signal.aborted) {
    try {
      await db.transaction(writeHeartbeat)
      if (isFailing) log.info('the heartbeat of control is written again')
      isFailing = false
    } catch (error) {
      // Once, however long the database is away.
      if (!isFailing) log.error({ err: error }, 'the heartbeat of control could not be written; retrying')
      isFailing = true
    }
    await sleep(everyMs, undefined, { signal }).catch(() => {})
  }
}
