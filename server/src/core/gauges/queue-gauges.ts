import type { Db } from '../../platform/db/db.ts'
import type { Logger } from '../../platform/telemetry/log.ts'
import { metrics } from '../../platform/telemetry/metrics.ts'
import { leaseSeconds } from '../mail/dispatch/claims.ts'
import { findControlStanding, findMailStanding, findOldestReady, limitTime } from './queue-gauges.sql.ts'

/**
 * How things stand in the database, for whoever reads metrics: what waits, and for how long. Workers look, and nobody
 * else; only when somebody reads, and every ten seconds at most, however often that is. So ten workers look once a second
 * between them, whoever scrapes them.
 */
export interface QueueGaugesDeps {
  db: Db
  /** Of the role that writes mail; undefined where there is none, at control that has cells. */
  mailDb: Db | undefined
  log: Logger
}

export interface QueueGaugesLimits {
  everyMs: number
  statementMs: number
  /** Whoever reads metrics waits no longer than this, and is told that nothing is known. */
  patienceMs: number
}

const usualLimits: QueueGaugesLimits = { everyMs: 10_000, statementMs: 2_000, patienceMs: 3_000 }

const providers = ['service', 'ses', 'none'] as const
const states = ['ready', 'leased', 'deferred', 'scheduled', 'awaiting'] as const

export class QueueGauges {
  readonly #deps: QueueGaugesDeps
  readonly #limits: QueueGaugesLimits
  #lookedAt = Number.NEGATIVE_INFINITY
  #looking: Promise<void> | undefined
  #isKnown = true

  constructor(deps: QueueGaugesDeps, limits: Partial<QueueGaugesLimits> = {}) {
    this.#deps = deps
    this.#limits = { ...usualLimits, ...limits }
  }

  /** Never rejects. */
  async show(): Promise<void> {
    if (performance.now() - this.#lookedAt < this.#limits.everyMs) return
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), this.#limits.patienceMs)
    })
    if ((await Promise.race([this.#looking, patience])) === 'late') forget()
    clearTimeout(timer)
  }

  async #look(): Promise<void> {
    const startedAt = performance.now()
    const { statementMs } = this.#limits
    try {
      const found = await this.#deps.mailDb?.read(async (tx) => {
        await limitTime(tx, statementMs)
        return { mail: await findMailStanding(tx, leaseSeconds), oldest: await findOldestReady(tx) }
      })
      const control = await this.#deps.db.read(async (tx) => {
        await limitTime(tx, statementMs)
        return findControlStanding(tx)
      })
      if (found) tellMail(found.mail, found.oldest)
      metrics.outboxLag.set({ told: 'mail' }, control.outbox_seconds ?? 0)
      metrics.checkpointLag.set({}, control.uncovered_seconds ?? 0)
      metrics.standingKnown.set({}, 1)
      this.#isKnown = true
    } catch (error) {
      forget()
      // Once, however long it lasts.
      if (this.#isKnown) this.#deps.log.warn({ err: error }, 'how things stand in the database is not known')
      this.#isKnown = false
    }
    this.#lookedAt = performance.now()
    metrics.standingSeconds.set({}, (performance.now() - startedAt) / 1000)
  }
}

function tellMail(
  mail: Awaited<ReturnType<typeof findMailStanding>>,
  oldest: readonly { provider: string; seconds: number }[],
): void {
  for (const state of states) metrics.queueDepth.set({ state }, mail[state])
  for (const provider of providers) {
    const seconds = oldest.find((one) => one.provider === provider)?.seconds
    metrics.queueAge.set({ provider }, seconds ?? 0)
  }
  metrics.queueOverdue.set({}, mail.overdue_seconds ?? 0)
  metrics.leaseAge.set({}, mail.lease_seconds ?? 0)
  metrics.webhookLag.set({ standing: 'proven' }, mail.proven_lag_seconds ?? 0)
  metrics.webhookLag.set({ standing: 'failing' }, mail.failing_lag_seconds ?? 0)
  metrics.webhooksParked.set({}, mail.parked)
  metrics.webhookWakes.set({}, mail.wakes)
  metrics.resultsOverdue.set({}, mail.results_seconds ?? 0)
  metrics.outboxLag.set({ told: 'control' }, mail.outbox_seconds ?? 0)
}

/** What was true a while ago is not shown as if it were true now. */
function forget(): void {
  metrics.standingKnown.set({}, 0)
  for (const state of states) metrics.queueDepth.set({ state }, undefined)
  for (const provider of providers) metrics.queueAge.set({ provider }, undefined)
  for (const standing of ['proven', 'failing'] as const) metrics.webhookLag.set({ standing }, undefined)
  for (const told of ['control', 'mail'] as const) metrics.outboxLag.set({ told }, undefined)
  const { queueOverdue, leaseAge, webhooksParked, webhookWakes, resultsOverdue, checkpointLag } = metrics
  for (const level of [queueOverdue, leaseAge, webhooksParked, webhookWakes, resultsOverdue, checkpointLag])
    level.set({}, undefined)
}
