import { setTimeout as sleep } from 'node:timers/promises'
import { type ResetMailDeps, sendDueResets } from '../core/control/access/password-reset.ts'
import { type CheckDeps, checkDomain, checkDue } from '../core/control/domains/check.ts'
import { sendDomainNotices } from '../core/control/domains/dns-notices.ts'
import {
  type ReconcileDeps,
  reconcileDue,
  reconcileIdentity,
} from '../core/control/domains/reconcile-identities.ts'
import { sendDisabledNotices } from '../core/control/endpoints/disabled-notices.ts'
import {
  type InvitationDeps,
  sendDueInvitations,
  sendInvitation,
} from '../core/control/members/invitations.ts'
import type { OwnerNoticeDeps } from '../core/control/notifications/owner-notices.ts'
import { type ConfirmationDeps, sendConfirmations } from '../core/control/routes/confirmations.ts'
import { keepPartitions } from '../core/mail/dispatch/partitions.ts'
import { cancelIfScheduled } from '../core/mail/messages/messages.ts'
import type { Cell, Cells, MailOf } from '../platform/db/cells.ts'
import { pendingMigrations } from '../platform/db/migrate.ts'
import type { Handlers, JobRunner, Schedules } from '../platform/jobs/jobs.ts'
import { type ChoreDeps, doChores, eachCell } from './chores.ts'
import { type DispatchDeps, Dispatcher } from './dispatcher.ts'
import { keepHeartbeat } from './heartbeat.ts'
import { type OutboxRelayDeps, runOutboxRelays } from './outbox-relay.ts'
import { WebhookDispatcher, type WebhookDispatcherDeps } from './webhook-dispatcher.ts'

/** `postern worker`: what nobody calls for. Takes its work from the database, with the role of the plane that it is about. */
export type WorkerDeps = CheckDeps &
  ReconcileDeps &
  ChoreDeps &
  InvitationDeps &
  ResetMailDeps &
  ConfirmationDeps &
  OwnerNoticeDeps &
  Omit<OutboxRelayDeps, 'mailDb' | 'shards'> & {
    runner: JobRunner
    cells: Cells
    mailOf: MailOf
    /** The cell whose mail this worker moves; undefined: none. */
    home: Cell | undefined
    /** Whether it does what belongs to no cell. */
    hasJobs: boolean
    retentionDays: number
    dispatch: Omit<DispatchDeps, 'db' | 'log'>
    webhooks: Omit<WebhookDispatcherDeps, 'db' | 'log'>
    /** Whether a cell has a copy of control, which needs a heartbeat. */
    hasCopies: boolean
  }

/** In one minute's round; what is left is for the next. */
const settledAtMost = 500
const checkedAtMost = 2000
const invitedAtMost = 500
const resetsAtMost = 500
const noticesAtMost = 500
const confirmationsAtMost = 500
/** A round ends before its job expires (platform/jobs/queues.ts), whoever does not answer. */
const roundMs = 90_000

/** Every queue, and what is done about a job of it. */
function handlersOf(deps: WorkerDeps, stopping: AbortSignal): Handlers {
  const end = () => AbortSignal.any([stopping, AbortSignal.timeout(roundMs)])
  return {
    'identities.settle': ({ identity_id }) => reconcileIdentity(deps, identity_id),
    'identities.sweep': () => reconcileDue(deps, settledAtMost, end()),
    'domains.check': ({ project_id, domain_id }) => checkDomain(deps, project_id, domain_id),
    'domains.sweep': async () => void (await checkDue(deps, checkedAtMost, end())),
    'domains.notify': () => sendDomainNotices(deps, noticesAtMost, end()),
    'invitations.send': ({ project_id, member_id }) => sendInvitation(deps, project_id, member_id),
    'invitations.sweep': () => sendDueInvitations(deps, invitedAtMost, end()),
    'password-resets.sweep': () => sendDueResets(deps, resetsAtMost, end()),
    'endpoints.notify': () => sendDisabledNotices(deps, noticesAtMost, end()),
    'forwards.confirm': () => sendConfirmations(deps, confirmationsAtMost, end()),
    chores: () => doChores(deps),
    'messages.cancel': ({ project_id, message_id }) =>
      deps.mailOf(project_id).transaction((tx) => cancelIfScheduled(tx, project_id, message_id)),
    'partitions.keep': () =>
      eachCell(deps.cells, async ({ name: cell, mail }) => {
        const { made, dropped } = await mail.transaction((tx) => keepPartitions(tx, deps.retentionDays))
        if (made + dropped > 0) deps.log.info({ cell, made, dropped }, 'partitions of mail')
      }),
  }
}

const everyMinute = '* * * * *'
const schedules: Schedules = {
  'identities.sweep': everyMinute,
  'domains.sweep': everyMinute,
  'domains.notify': everyMinute,
  'invitations.sweep': everyMinute,
  'password-resets.sweep': everyMinute,
  'endpoints.notify': everyMinute,
  'forwards.confirm': everyMinute,
  chores: everyMinute,
  'partitions.keep': '7 * * * *',
}

export interface Worker {
  stop(graceMs: number): Promise<void>
}

export function startWorker(deps: WorkerDeps): Worker {
  const stopping = new AbortController()
  const loops = deps.home ? loopsOf(deps, deps.home) : []
  const running = start(deps, loops, stopping.signal)
  return {
    async stop(graceMs) {
      stopping.abort()
      await Promise.all([deps.runner.stop(graceMs), ...loops.map((loop) => loop.stop())])
      await running
    },
  }
}

/** What moves the mail of a cell. */
const loopsOf = ({ dispatch, webhooks, log }: WorkerDeps, { mail: db }: Cell) => [
  new Dispatcher({ ...dispatch, db, log }),
  new WebhookDispatcher({ ...webhooks, db, log }),
]

const retryMs = 2_000

/** A database that is away, or was not migrated yet, is waited for. */
async function start(
  deps: WorkerDeps,
  loops: readonly { start(): void }[],
  signal: AbortSignal,
): Promise<void> {
  const { db, home, hasJobs, hasCopies, runner, log } = deps
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    try {
      const pending = await (home?.admin ?? db).read(pendingMigrations).catch(() => undefined)
      if (pending?.length === 0) {
        if (hasJobs) await runner.run(handlersOf(deps, signal), schedules)
        if (signal.aborted) return
        for (const loop of loops) loop.start()
        log.info('working')
        await Promise.all([
          home && runOutboxRelays({ db, mailDb: home.mail, shards: home.shards, log }, signal),
          hasJobs && hasCopies && keepHeartbeat({ db, log }, signal),
        ])
        return
      }
      if (isFirst) log.warn('the database cannot be used yet: is it up, and was `postern migrate` run?')
    } catch (error) {
      if (!signal.aborted) log.error({ err: error }, 'the worker could not start; tried again')
    }
    await sleep(retryMs, undefined, { signal }).catch(() => {})
  }
}
