import { setTimeout as sleep } from 'node:timers/promises'
import { keepPartitions } from '../core/dispatch/partitions.ts'
import { type CheckDeps, checkDomain, checkDue } from '../core/domains/check.ts'
import { type SettleDeps, settleDue, settleIdentity } from '../core/domains/settle.ts'
import { type NoticeDeps, sendNotices } from '../core/endpoints/notices.ts'
import { type InvitationDeps, sendDueInvitations, sendInvitation } from '../core/members/invitations.ts'
import { cancelIfScheduled } from '../core/messages/messages.ts'
import type { UnscopedDb } from '../platform/db/db.ts'
import { pendingMigrations } from '../platform/db/migrate.ts'
import type { Handlers, JobRunner, Schedules } from '../platform/jobs/jobs.ts'
import { type ChoreDeps, doChores } from './chores.ts'
import { type DispatchDeps, Dispatcher } from './dispatch.ts'
import { keepTelling, type TellingDeps } from './telling.ts'
import { type WebhookDeps, Webhooks } from './webhooks.ts'

/** `postern worker`: what nobody calls for. Takes its work from the database, with the role of the plane that it is about. */
export type WorkerDeps = CheckDeps &
  SettleDeps &
  ChoreDeps &
  InvitationDeps &
  NoticeDeps &
  TellingDeps & {
    runner: JobRunner
    /** Of the role that writes mail. */
    mailDb: UnscopedDb
    retentionDays: number
    dispatch: Omit<DispatchDeps, 'db' | 'log'>
    webhooks: Omit<WebhookDeps, 'db' | 'log'>
  }

/** In one minute's round; what is left is for the next. */
const settledAtMost = 500
const checkedAtMost = 2000
const invitedAtMost = 500
const noticesAtMost = 500
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
    'invitations.send': ({ project_id, member_id }) => sendInvitation(deps, project_id, member_id),
    'invitations.sweep': () => sendDueInvitations(deps, invitedAtMost, end()),
    'endpoints.notify': () => sendNotices(deps, noticesAtMost, end()),
    chores: () => doChores(deps),
    'messages.cancel': ({ project_id, message_id }) =>
      deps.mailDb.transaction((tx) => cancelIfScheduled(tx, project_id, message_id)),
    'partitions.keep': async () => {
      const { made, dropped } = await deps.mailDb.transaction((tx) => keepPartitions(tx, deps.retentionDays))
      if (made + dropped > 0) deps.log.info({ made, dropped }, 'partitions of mail')
    },
  }
}

const everyMinute = '* * * * *'
const schedules: Schedules = {
  'identities.sweep': everyMinute,
  'domains.sweep': everyMinute,
  'invitations.sweep': everyMinute,
  'endpoints.notify': everyMinute,
  chores: everyMinute,
  'partitions.keep': '7 * * * *',
}

export interface Worker {
  stop(graceMs: number): Promise<void>
}

export function startWorker(deps: WorkerDeps): Worker {
  const stopping = new AbortController()
  const dispatcher = new Dispatcher({ ...deps.dispatch, db: deps.mailDb, log: deps.log })
  const webhooks = new Webhooks({ ...deps.webhooks, db: deps.mailDb, log: deps.log })
  const running = start(deps, [dispatcher, webhooks], stopping.signal)
  return {
    async stop(graceMs) {
      stopping.abort()
      await Promise.all([deps.runner.stop(graceMs), dispatcher.stop(), webhooks.stop()])
      await running
    },
  }
}

const retryMs = 2_000

/** A database that is away, or was not migrated yet, is waited for. */
async function start(
  deps: WorkerDeps,
  loops: readonly { start(): void }[],
  signal: AbortSignal,
): Promise<void> {
  const { db, runner, log } = deps
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    try {
      const pending = await db.read(pendingMigrations).catch(() => undefined)
      if (pending?.length === 0) {
        await runner.run(handlersOf(deps, signal), schedules)
        if (signal.aborted) return
        for (const loop of loops) loop.start()
        log.info('working')
        return await keepTelling(deps, signal)
      }
      if (isFirst) log.warn('the database cannot be used yet: is it up, and was `postern migrate` run?')
    } catch (error) {
      if (!signal.aborted) log.error({ err: error }, 'the worker could not start; tried again')
    }
    await sleep(retryMs, undefined, { signal }).catch(() => {})
  }
}
