import { setTimeout as sleep } from 'node:timers/promises'
import { type CheckDeps, checkDomain, checkDue } from '../core/domains/check.ts'
import { type SettleDeps, settleDue, settleIdentity } from '../core/domains/settle.ts'
import { pendingMigrations } from '../platform/db/migrate.ts'
import type { Handlers, JobRunner } from '../platform/jobs/jobs.ts'
import type { QueueName } from '../platform/jobs/queues.ts'
import { type ChoreDeps, doChores } from './chores.ts'

/** `postern worker`: what nobody calls for. Takes its work from the database, as the administrative role. */
export type WorkerDeps = CheckDeps & SettleDeps & ChoreDeps & { runner: JobRunner }

/** In one minute's round; what is left is for the next. */
const settledAtMost = 500
const checkedAtMost = 2000
/** A round ends before its job expires (platform/jobs/queues.ts), whoever does not answer. */
const roundMs = 90_000

/** Every queue, and what is done about a job of it. */
function handlersOf(deps: WorkerDeps, stopping: AbortSignal): Handlers {
  const end = () => AbortSignal.any([stopping, AbortSignal.timeout(roundMs)])
  return {
    'identities.settle': ({ identity_id }) => settleIdentity(deps, identity_id),
    'identities.sweep': () => settleDue(deps, settledAtMost, end()),
    'domains.check': ({ project_id, domain_id }) => checkDomain(deps, project_id, domain_id),
    'domains.sweep': async () => void (await checkDue(deps, checkedAtMost, end())),
    chores: () => doChores(deps),
  }
}

const everyMinute: readonly QueueName[] = ['identities.sweep', 'domains.sweep', 'chores']

export interface Worker {
  stop(graceMs: number): Promise<void>
}

export function startWorker(deps: WorkerDeps): Worker {
  const stopping = new AbortController()
  const running = start(deps, stopping.signal)
  return {
    async stop(graceMs) {
      stopping.abort()
      await deps.runner.stop(graceMs)
      await running
    },
  }
}

const retryMs = 2_000

/** A database that is away, or was not migrated yet, is waited for. */
async function start(deps: WorkerDeps, signal: AbortSignal): Promise<void> {
  const { db, runner, log } = deps
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    try {
      const pending = await db.read(pendingMigrations).catch(() => undefined)
      if (pending?.length === 0) {
        await runner.run(handlersOf(deps, signal), everyMinute)
        if (!signal.aborted) log.info('working')
        return
      }
      if (isFirst) log.warn('the database cannot be used yet: is it up, and was `postern migrate` run?')
    } catch (error) {
      if (!signal.aborted) log.error({ err: error }, 'the worker could not start; tried again')
    }
    await sleep(retryMs, undefined, { signal }).catch(() => {})
  }
}
