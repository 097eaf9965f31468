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

/** Every queue, and what is done about a job of it. */
const handlersOf = (deps: WorkerDeps): Handlers => ({
  'identities.settle': ({ identity_id }) => settleIdentity(deps, identity_id),
  'identities.sweep': () => settleDue(deps, settledAtMost),
  'domains.check': ({ project_id, domain_id }) => checkDomain(deps, project_id, domain_id),
  'domains.sweep': async () => void (await checkDue(deps, checkedAtMost)),
  chores: () => doChores(deps),
})

const everyMinute: readonly QueueName[] = ['identities.sweep', 'domains.sweep', 'chores']

export interface Worker {
  stop(graceMs: number): Promise<void>
}

export function startWorker(deps: WorkerDeps): Worker {
  const stopping = new AbortController()
  const running = (async () => {
    await untilMigrated(deps, stopping.signal)
    if (stopping.signal.aborted) return
    await deps.runner.run(handlersOf(deps), everyMinute)
    deps.log.info('working')
  })().catch((error: unknown) => deps.log.error({ err: error }, 'the worker could not start'))
  return {
    async stop(graceMs) {
      stopping.abort()
      await deps.runner.stop(graceMs)
      await running
    },
  }
}

const migrationPollMs = 2_000

async function untilMigrated({ db, log }: WorkerDeps, signal: AbortSignal): Promise<void> {
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    const pending = await db.read(pendingMigrations).catch(() => undefined)
    if (pending?.length === 0) return
    if (isFirst) log.warn('the database cannot be used yet: is it up, and was `postern migrate` run?')
    await sleep(migrationPollMs, undefined, { signal }).catch(() => {})
  }
}
