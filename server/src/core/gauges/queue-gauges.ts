import type { Db } from '../../platform/db/db.ts'
import type { Logger } from '../../platform/telemetry/log.ts'
import { metrics } from '../../platform/telemetry/metrics.ts'
import { leaseSeconds } from '../mail/dispatch/claims.ts'
import {
  readControlGauges,
  readMailGauges,
  readOldestReady,
  setStatementTimeout,
} from './queue-gauges.sql.ts'

// The gauges that metrics read from the database: how much waits, and for how long. Only workers read them, only when they
// are scraped, and at most every ten seconds. Ten workers thus read once a second between them, however often they are
// scraped.

export interface QueueGaugesDeps {
  db: Db
  /** Has the role that writes mail. Undefined: this process has no mail side (control of an installation with cells). */
  mailDb: Db | undefined
  log: Logger
}

export interface QueueGaugesLimits {
  everyMs: number
  statementMs: number
  /** A scrape waits no longer than this; then the gauges are cleared. */
  maxWaitMs: number
}

const defaultLimits: QueueGaugesLimits = { everyMs: 10_000, statementMs: 2_000, maxWaitMs: 3_000 }

const providers = ['service', 'ses', 'none'] as const
const states = ['ready', 'leased', 'deferred', 'scheduled', 'awaiting'] as const

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
        return { mail: await readMailGauges(tx, leaseSeconds), oldest: await readOldestReady(tx) }
      })
      const control = await this.#deps.db.read(async (tx) => {
        await setStatementTimeout(tx, statementMs)
        return readControlGauges(tx)
      })
      if (found) setMailGauges(found.mail, found.oldest)
      metrics.outboxLag.set({ target: 'mail' }, control.outbox_seconds ?? 0)
      metrics.checkpointLag.set({}, control.uncovered_seconds ?? 0)
      metrics.queueMetricsUp.set({}, 1)
      this.#isAvailable = true
    } catch (error) {
      clearGauges()
      // Logged once, however long it lasts.
      if (this.#isAvailable) this.#deps.log.warn({ err: error }, 'queue metrics unavailable')
      this.#isAvailable = false
    }
    this.#readAt = performance.now()
    metrics.queueMetricsSeconds.set({}, (performance.now() - startedAt) / 1000)
  }
}

function setMailGauges(
  mail: Awaited<ReturnType<typeof readMailGauges>>,
  oldest: readonly { provider: string; seconds: number }[],
): void {
  for (const state of states) metrics.queueDepth.set({ state }, mail[state])
  for (const provider of providers) {
    const seconds = oldest.find((one) => one.provider === provider)?.seconds
    metrics.queueAge.set({ provider }, seconds ?? 0)
  }
  metrics.queueOverdue.set({}, mail.overdue_seconds ?? 0)
  metrics.leaseAge.set({}, mail.lease_seconds ?? 0)
  metrics.webhookLag.set({ health: 'healthy' }, mail.healthy_lag_seconds ?? 0)
  metrics.webhookLag.set({ health: 'failing' }, mail.failing_lag_seconds ?? 0)
  metrics.webhooksParked.set({}, mail.parked)
  metrics.webhookWakes.set({}, mail.wakes)
  metrics.resultsOverdue.set({}, mail.results_seconds ?? 0)
  metrics.outboxLag.set({ target: 'control' }, mail.outbox_seconds ?? 0)
}

/** Outdated values are not shown as current ones. */
function clearGauges(): void {
  metrics.queueMetricsUp.set({}, 0)
  for (const state of states) metrics.queueDepth.set({ state }, undefined)
  for (const provider of providers) metrics.queueAge.set({ provider }, undefined)
  for (const health of ['healthy', 'failing'] as const) metrics.webhookLag.set({ health }, undefined)
  for (const target of ['control', 'mail'] as const) metrics.outboxLag.set({ target }, undefined)
  const { queueOverdue, leaseAge, webhooksParked, webhookWakes, resultsOverdue, checkpointLag } = metrics
  for (const level of [queueOverdue, leaseAge, webhooksParked, webhookWakes, resultsOverdue, checkpointLag])
    level.set({}, undefined)
}
