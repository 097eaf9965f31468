import { setTimeout as sleep } from 'node:timers/promises'
import { type CheckDeps, checkDomain, checkDue } from '../core/control/domains/check.ts'
import {
  type ReconcileDeps,
  reconcileDue,
  reconcileIdentity,
} from '../core/control/domains/reconcile-identities.ts'
import { type SystemMailDeps, sendSystemMails } from '../core/control/notifications/system-mails.ts'
import { runPolicies } from '../core/control/policies/run-policies.ts'
import { type ConfirmationDeps, releaseConfirmations } from '../core/control/routes/forward-confirmations.ts'
import { keepPartitions } from '../core/mail/dispatch/partitions.ts'
import { type EvidenceDeps, makeEvidence } from '../core/mail/evidence/make-evidence.ts'
import { cancelIfScheduled } from '../core/mail/messages/messages.ts'
import type { Cell, Cells, MailOf } from '../platform/db/cells.ts'
import type { HintListener } from '../platform/db/hints.ts'
import { pendingMigrations } from '../platform/db/migrate.ts'
import type { Handlers, JobRunner, Schedules } from '../platform/jobs/jobs.ts'
import type { QueueName } from '../platform/jobs/queues.ts'
import { type ChoreDeps, doChores, eachCell } from './chores.ts'
import { type DispatchDeps, Dispatcher } from './dispatcher.ts'
import { type ExpiryDeps, runExpiries } from './expiries.ts'
import { keepHeartbeat } from './heartbeat.ts'
import { type OutboxRelayDeps, runOutboxRelays } from './outbox-relay.ts'
import { WebhookDispatcher, type WebhookDispatcherDeps } from './webhook-dispatcher.ts'

// `postern worker`: the table of job queues with their cron schedules, and the loops that send mail, deliver
// webhooks and relay the outboxes. Each queue and loop reads its work from the database, with the role of its
// side (control or mail).

export type WorkerDeps = CheckDeps &
  ReconcileDeps &
  ChoreDeps &
  SystemMailDeps &
  ConfirmationDeps &
  EvidenceDeps &
  Omit<OutboxRelayDeps, 'mailDb' | 'shards' | 'hints'> & {
    runner: JobRunner
    cells: Cells
    mailOf: MailOf
    /** The cell whose mail this worker sends; undefined for none. */
    home: Cell | undefined
    /** Whether this worker runs the job queues, which do not belong to any cell. */
    hasJobs: boolean
    retentionDays: number
    dispatch: Omit<DispatchDeps, 'db' | 'log'>
    webhooks: Omit<WebhookDispatcherDeps, 'db' | 'log'>
    performBulkActions: ExpiryDeps['performBulkActions']
    /** Hints sent in the control database. */
    hints: HintListener
    /** Whether any cell has a control replica, which needs a heartbeat. */
    hasCopies: boolean
  }

/** Limits of one sweep; the next sweep continues. */
const maxIdentities = 500
const maxDomains = 2000
const maxSystemMails = 2000
const maxConfirmations = 500
/** A sweep must end before its job expires (platform/jobs/queues.ts), even if a server does not respond. */
const sweepMs = 90_000

const everyMinute = '* * * * *'

type Jobs = { [Queue in QueueName]: { cron?: string; run: Handlers[Queue] } }

/** All job queues with their cron schedules, if any, and their handlers. */
function jobsOf(deps: WorkerDeps, stopping: AbortSignal): Jobs {
  const end = () => AbortSignal.any([stopping, AbortSignal.timeout(sweepMs)])
  return {
    'identities.reconcile': { run: ({ identity_id }) => reconcileIdentity(deps, identity_id) },
    'identities.sweep': { cron: everyMinute, run: () => reconcileDue(deps, maxIdentities, end()) },
    'domains.check': { run: ({ project_id, domain_id }) => checkDomain(deps, project_id, domain_id) },
    'domains.sweep': {
      cron: everyMinute,
      run: async () => void (await checkDue(deps, maxDomains, end())),
    },
    'system-mail.send': { cron: everyMinute, run: () => sendSystemMails(deps, maxSystemMails, end()) },
    'evidence.make': { cron: everyMinute, run: () => makeEvidence(deps, end()) },
    'policies.evaluate': { cron: everyMinute, run: () => runPolicies(deps, end()) },
    'forwards.confirm': {
      cron: everyMinute,
      async run() {
        const signal = end()
        await releaseConfirmations(deps, maxConfirmations, signal)
        await sendSystemMails(deps, maxSystemMails, signal)
      },
    },
    chores: { cron: everyMinute, run: () => doChores(deps) },
    'messages.cancel': {
      run: ({ project_id, message_id }) =>
        deps.mailOf(project_id).transaction((tx) => cancelIfScheduled(tx, project_id, message_id)),
    },
    'partitions.keep': {
      cron: '7 * * * *',
      run: () =>
        eachCell(deps.cells, async ({ name: cell, mail }) => {
          const { made, dropped } = await mail.transaction((tx) => keepPartitions(tx, deps.retentionDays))
          if (made + dropped > 0)
            deps.log.info({ cell, made, dropped }, 'created and dropped mail partitions')
        }),
    },
  }
}

function runJobs(runner: JobRunner, jobs: Jobs): Promise<void> {
  const entries = Object.entries(jobs) as [QueueName, Jobs[QueueName]][]
  const handlers = Object.fromEntries(entries.map(([queue, { run }]) => [queue, run])) as Handlers
  const schedules: Schedules = Object.fromEntries(
    entries.flatMap(([queue, { cron }]) => (cron === undefined ? [] : [[queue, cron]])),
  )
  return runner.run(handlers, schedules)
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

/** The loops that send a cell's mail and webhooks. */
const loopsOf = ({ dispatch, webhooks, log }: WorkerDeps, { mail: db, hints }: Cell) => [
  new Dispatcher({ ...dispatch, db, hints, log }),
  new WebhookDispatcher({ ...webhooks, db, hints, log }),
]

const relayDepsOf = ({ db, hints, log }: WorkerDeps, { mail, shards, hints: mailHints }: Cell) => ({
  ...{ db, mailDb: mail, shards, log },
  hints: { mail: mailHints, control: hints === mailHints ? hints : undefined },
})

const retryMs = 2_000

/** Waits until the database is available and migrated. */
async function start(
  deps: WorkerDeps,
  loops: readonly { start(): void }[],
  signal: AbortSignal,
): Promise<void> {
  const { db, mailOf, performBulkActions, home, hasJobs, hasCopies, runner, log } = deps
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    try {
      const pending = await (home?.admin ?? db).read(pendingMigrations).catch(() => undefined)
      if (pending?.length === 0) {
        if (hasJobs) await runJobs(runner, jobsOf(deps, signal))
        if (signal.aborted) return
        for (const loop of loops) loop.start()
        log.info('working')
        await Promise.all([
          home && runOutboxRelays(relayDepsOf(deps, home), signal),
          hasJobs && hasCopies && keepHeartbeat({ db, log }, signal),
          hasJobs && runExpiries({ db, mailOf, performBulkActions, log }, signal),
        ])
        return
      }
      if (isFirst) log.warn('the database is not ready: is it running, and has `postern migrate` been run?')
    } catch (error) {
      if (!signal.aborted) log.error({ err: error }, 'the worker could not start; retrying')
    }
    await sleep(retryMs, undefined, { signal }).catch(() => {})
  }
}
