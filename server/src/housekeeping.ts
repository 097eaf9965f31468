import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from './context.ts'
import { runCheckpoints } from './core/audit/checkpoints.ts'
import { purgeDenials } from './core/audit/denials.ts'
import { forgetExpiredAnswers } from './core/idempotency/idempotency.ts'
import { pendingMigrations } from './platform/db/migrate.ts'

/**
 * What has to be done once a minute, by any process that serves the interface: signing the audit, and forgetting
 * what has had its time. Each task can be run twice or by two processes at once without harm.
 */
const intervalMs = 60_000

export interface Housekeeping {
  stop(): Promise<void>
}

export function startHousekeeping(context: Context): Housekeeping {
  const stopping = new AbortController()
  const work = (async () => {
    while (!stopping.signal.aborted) {
      await keepHouse(context)
      await sleep(intervalMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  })()
  return {
    async stop() {
      stopping.abort()
      await work
    },
  }
}

export async function keepHouse({ config, db, log }: Context): Promise<void> {
  const pending = await db.admin.read(pendingMigrations).catch(() => undefined)
  if (pending === undefined || pending.length > 0) {
    log.warn('the database cannot be used yet: is it up, and was `postern migrate` run?')
    return
  }
  const tasks = {
    'audit checkpoint': () =>
      runCheckpoints({ db: db.admin, masterKeys: config.masterKeys, file: config.auditCheckpointFile, log }),
    'expired idempotency keys': () => db.admin.transaction(forgetExpiredAnswers),
    'old denials': () => db.admin.transaction(purgeDenials),
  }
  for (const [task, run] of Object.entries(tasks)) {
    try {
      await run()
    } catch (error) {
      log.error({ err: error, task }, 'a chore failed; it is tried again in a minute')
    }
  }
}
