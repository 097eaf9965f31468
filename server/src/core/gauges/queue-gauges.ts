import type { Db, ReadTx } from '../../platform/db/db.ts'
import { setStatementTimeout } from '../../platform/db/statement-timeout.ts'
import type { Logger } from '../../platform/telemetry/log.ts'
import { Gauge } from '../../platform/telemetry/metrics.ts'
import { leaseSeconds } from '../mail/dispatch/claims.ts'
import { type MailGauges, readControlGauges, readMailGauges, readOldestReady } from './queue-gauges.sql.ts'

// The metrics that are read from the database: queue lengths and ages. Only workers read them, only when scraped, and at
// most every ten seconds. Ten workers together read once per second, regardless of the scrape interval. The overview shows
// the same figures.

export interface QueueState {
  mail: MailGauges
  oldest: { provider: string; seconds: number }[]
}

/** The queue of one mail database. */
export const readQueueState = async (tx: ReadTx): Promise<QueueState> => ({
  mail: await readMailGauges(tx, leaseSeconds),
  oldest: await readOldestReady(tx),
})

export const readControlState = readControlGauges

export interface QueueGaugesDeps {
  db: Db
  /** Connected with the role that writes mail. Undefined in a multi-cell installation's control process. */
  mailDb: Db | undefined
  /** Whether this installation sends system mail. */
  hasSystemMail?: boolean
  log: Logger
}

export interface QueueGaugesLimits {
  everyMs: number
  statementMs: number
  /** The maximum time that a scrape waits. After that, the gauges are cleared. */
  maxWaitMs: number
}

const defaultLimits: QueueGaugesLimits = { everyMs: 10_000, statementMs: 2_000, maxWaitMs: 3_000 }

const providers = ['service', 'ses', 'none'] as const
const states = ['ready', 'leased', 'deferred', 'scheduled', 'awaiting'] as const

const metricsUp = new Gauge(
  'postern_queue_metrics_up',
  '1 if the last read of the queue metrics from the database succeeded, otherwise 0.',
  {},
)
const readSeconds = new Gauge(
  'postern_queue_metrics_duration_seconds',
  'Duration of the last read of the queue metrics.',
  {},
)

/** Read from the database. */
const gauges = {
  depth: new Gauge('postern_queue_mails', 'Queued messages, by state; each count stops at 10,000.', {
    state: states,
  }),
  oldestReady: new Gauge(
    'postern_queue_oldest_ready_seconds',
    'Age of the oldest message that is ready and allowed to be sent, by provider; 0 if there is none.',
    { provider: providers },
  ),
  overdue: new Gauge(
    'postern_queue_overdue_seconds',
    'Time for which the oldest deferred or scheduled message has been overdue.',
    {},
  ),
  oldestLease: new Gauge('postern_lease_oldest_seconds', 'Age of the oldest lease on a message.', {}),
  webhookLag: new Gauge(
    'postern_webhook_lag_seconds',
    'Time for which the oldest due webhook delivery has been waiting, by health of its endpoint.',
    { health: ['healthy', 'failing'] },
  ),
  webhooksParked: new Gauge(
    'postern_webhook_endpoints_parked',
    'Failing endpoints waiting for their next attempt; the count stops at 10,000.',
    {},
  ),
  webhookWakes: new Gauge(
    'postern_webhook_wakes',
    'Events waiting for fan-out and wakes waiting for a worker; the count stops at 20,000.',
    {},
  ),
  resultsOverdue: new Gauge(
    'postern_results_overdue_seconds',
    'Time for which the events of the oldest attempt result have been overdue; they are due after ten seconds.',
    {},
  ),
  outboxLag: new Gauge('postern_outbox_lag_seconds', 'Age of the oldest outbox message, by target.', {
    target: ['control', 'mail'],
  }),
  uncovered: new Gauge(
    'postern_audit_uncovered_seconds',
    'Age of the oldest audit entry that no checkpoint covers; 0 if there is none.',
    {},
  ),
  systemMail: new Gauge(
    'postern_system_mail_oldest_seconds',
    'Age of the oldest system mail that no MTA has accepted; 0 if there is none. Absent if no system mail is configured.',
    {},
  ),
  tripped: new Gauge(
    'postern_policies_tripped',
    'Policies that the breaker has set to shadow and whose mode has not been edited since.',
    {},
  ),
  evaluationLag: new Gauge(
    'postern_policy_evaluation_lag_seconds',
    'Time since the end of the last bucket that was evaluated, in the cell that is furthest behind.',
    {},
  ),
}

export class QueueGauges {
  readonly #deps: QueueGaugesDeps
  readonly #limits: QueueGaugesLimits
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined
  #isAvailable = true

  constructor(deps: QueueGaugesDeps, limits: Partial<QueueGaugesLimits> = {}) {
    this.#deps = deps
    this.#limits = { ...defaultLimits, ...limits }
  }

  /** Never rejects. */
  async refresh(): Promise<void> {
    if (performance.now() - this.#readAt < this.#limits.everyMs) return
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), this.#limits.maxWaitMs)
    })
    if ((await Promise.race([this.#reading, late])) === 'late') clearGauges()
    clearTimeout(timer)
  }

  async #read(): Promise<void> {
    const startedAt = performance.now()
    const { statementMs } = this.#limits
    try {
      const found = await this.#deps.mailDb?.read(async (tx) => {
        await setStatementTimeout(tx, statementMs)
        return readQueueState(tx)
      })
      const control = await this.#deps.db.read(async (tx) => {
        await setStatementTimeout(tx, statementMs)
        return readControlGauges(tx)
      })
      if (found) setMailGauges(found)
      gauges.outboxLag.set({ target: 'mail' }, control.outbox_seconds ?? 0)
      gauges.uncovered.set({}, control.uncovered_seconds ?? 0)
      if (this.#deps.hasSystemMail) gauges.systemMail.set({}, control.system_mail_seconds ?? 0)
      gauges.tripped.set({}, control.tripped_policies)
      gauges.evaluationLag.set({}, control.evaluation_lag_seconds ?? 0)
      metricsUp.set({}, 1)
      this.#isAvailable = true
    } catch (error) {
      clearGauges()
      // Logged once per outage.
      if (this.#isAvailable) this.#deps.log.warn({ err: error }, 'queue metrics unavailable')
      this.#isAvailable = false
    }
    this.#readAt = performance.now()
    readSeconds.set({}, (performance.now() - startedAt) / 1000)
  }
}

function setMailGauges({ mail, oldest }: QueueState): void {
  for (const state of states) gauges.depth.set({ state }, mail[state])
  for (const provider of providers) {
    const seconds = oldest.find((one) => one.provider === provider)?.seconds
    gauges.oldestReady.set({ provider }, seconds ?? 0)
  }
  gauges.overdue.set({}, mail.overdue_seconds ?? 0)
  gauges.oldestLease.set({}, mail.lease_seconds ?? 0)
  gauges.webhookLag.set({ health: 'healthy' }, mail.healthy_lag_seconds ?? 0)
  gauges.webhookLag.set({ health: 'failing' }, mail.failing_lag_seconds ?? 0)
  gauges.webhooksParked.set({}, mail.parked)
  gauges.webhookWakes.set({}, mail.wakes)
  gauges.resultsOverdue.set({}, mail.results_seconds ?? 0)
  gauges.outboxLag.set({ target: 'control' }, mail.outbox_seconds ?? 0)
}

/** Outdated values are not exported. */
function clearGauges(): void {
  metricsUp.set({}, 0)
  for (const gauge of Object.values(gauges)) gauge.reset()
}
