import { setTimeout as sleep } from 'node:timers/promises'
import type { Dispatcher } from 'undici'
import type { Vault } from '../core/control/secrets/vault.ts'
import { DeliveryResults } from '../core/mail/webhooks/delivery-results.ts'
import { DeliveryRun, type DeliveryRunDeps } from '../core/mail/webhooks/delivery-run.ts'
import {
  type Claim,
  type ClaimedQueue,
  EndpointQueues,
  type Work,
} from '../core/mail/webhooks/endpoint-queues.ts'
import { FanOut } from '../core/mail/webhooks/fan-out.ts'
import { PendingDeliveries } from '../core/mail/webhooks/pending-deliveries.ts'
import { type RetryDelay, retryDelayMs as usualRetryDelayMs } from '../core/mail/webhooks/retry-schedule.ts'
import { defaultSlots, type SlotCounts, WebhookSlots } from '../core/mail/webhooks/slots.ts'
import { Targets } from '../core/mail/webhooks/targets.ts'
import { requestMs, WebhookClient } from '../core/mail/webhooks/webhook-client.ts'
import type { UnscopedDb } from '../platform/db/db.ts'
import { type HintListener, Waiter } from '../platform/db/hints.ts'
import type { NetGuard } from '../platform/net/net-guard.ts'
import type { Logger } from '../platform/telemetry/log.ts'

// The loop that delivers webhooks: claims endpoints' due queues and starts a delivery run for each
// (core/mail/webhooks/delivery-run.ts). All state is in the database; other workers claim a crashed worker's
// queues when its leases expire.

export interface WebhookDispatcherDeps {
  /** Has the role that writes mail. */
  db: UnscopedDb
  vault: Vault
  guard: NetGuard
  /** `Postern/<version>` */
  userAgent: string
  slots?: SlotCounts
  random?: () => number
  /**
   * Tests set these two so that no request times out and no retry is due before the test advances the clock.
   */
  requestTimeoutMs?: number | undefined
  retryDelayMs?: RetryDelay | undefined
  /** Without hints, the database is polled more often. */
  hints?: HintListener
  /** For tests. */
  idlePollMs?: number
  log: Logger
}

/** Polling interval of an idle worker without hints. */
const idleMs = { least: 50, most: 250 }
/** Polling interval of an idle worker that receives hints, unless a retry is due earlier. */
const usualIdlePollMs = 5_000
/** Polling interval while runs are in progress. */
const busyMs = 20
const failureMs = 1_000
const connectMs = 5_000
/**
 * The maximum number of runs that one claim can start, and that one project can have, is a quarter of the
 * slots, because a project can have many slow endpoints.
 */
const claimFraction = 4
/**
 * Failing endpoints per claim. A hundred requests that time out end at the same time, and starting a hundred
 * TLS handshakes right after that would block the thread for all other requests.
 */
const maxFailingClaims = 10

export class WebhookDispatcher {
  readonly #log: Logger
  readonly #hints: HintListener | undefined
  readonly #idlePollMs: number
  readonly #agent: Dispatcher
  readonly #queues: EndpointQueues
  readonly #fanOut: FanOut
  readonly #slots: WebhookSlots
  readonly #runDeps: DeliveryRunDeps
  readonly #runs = new Map<Promise<void>, ClaimedQueue>()
  readonly #shares: SlotCounts
  readonly #maxRuns: number
  readonly #stopping = new AbortController()
  #fanningOut: Promise<void> | undefined
  #running: Promise<void> | undefined

  constructor({
    db,
    vault,
    guard,
    userAgent,
    log,
    slots = defaultSlots,
    random = Math.random,
    requestTimeoutMs = requestMs,
    retryDelayMs = usualRetryDelayMs,
    hints,
    idlePollMs = usualIdlePollMs,
  }: WebhookDispatcherDeps) {
    this.#log = log
    this.#hints = hints
    this.#idlePollMs = idlePollMs
    this.#queues = new EndpointQueues(db)
    this.#fanOut = new FanOut(db, (error, projectId) =>
      log.error({ err: error, project_id: projectId }, 'webhook fan-out failed; retrying'),
    )
    this.#slots = new WebhookSlots(slots)
    this.#shares = {
      healthy: Math.ceil(slots.healthy / claimFraction),
      failing: Math.ceil(slots.failing / claimFraction),
    }
    this.#maxRuns = slots.healthy + slots.failing
    this.#agent = guard.agent({
      connectTimeoutMs: connectMs,
      headersTimeoutMs: requestTimeoutMs,
      bodyTimeoutMs: requestTimeoutMs,
      // Many projects' endpoints can share a host, so the limit is high enough that no request waits for a
      // connection. WebhookSlots limits concurrency.
      connectionsPerOrigin: this.#maxRuns,
    })
    this.#runDeps = {
      db,
      client: new WebhookClient(this.#agent, requestTimeoutMs),
      userAgent,
      pending: new PendingDeliveries(db),
      targets: new Targets(db, vault),
      slots: this.#slots,
      results: new DeliveryResults(db, (error, lost) =>
        log.error({ err: error, lost }, 'webhook results could not be recorded'),
      ),
      random,
      retryDelayMs,
      log,
    }
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Stops starting requests, and resolves when all requests in flight are completed. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
    await this.#fanningOut
    await Promise.all(this.#runs.keys())
    await this.#agent.destroy()
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    const waiter = this.#hints?.waiter('webhooks') ?? new Waiter()
    let idle = idleMs.least
    while (!signal.aborted) {
      try {
        const { isBusy, idleForMs } = await this.#step()
        idle = isBusy ? idleMs.least : Math.min(idleMs.most, idle * 2)
        if (idleForMs !== undefined && waiter.isListening) {
          await Promise.all([
            waiter.wait(idleForMs, signal),
            sleep(busyMs, undefined, { signal }).catch(() => {}),
          ])
          continue
        }
        const pause = isBusy ? 0 : this.#runs.size > 0 ? busyMs : idle
        const paused = sleep(pause, undefined, { signal }).catch(() => {})
        await Promise.race([paused, this.#fanningOut ?? paused])
      } catch (error) {
        this.#log.error({ err: error }, 'endpoint queues cannot be read; retrying')
        await sleep(failureMs, undefined, { signal }).catch(() => {})
      }
    }
    waiter.close()
  }

  /** `isBusy`: queues were claimed. `idleForMs`: how long there will be no work, unless a hint arrives. */
  async #step(): Promise<{ isBusy: boolean; idleForMs?: number }> {
    const work = await this.#queues.findWork()
    if (work.has_fan_outs) this.#startFanOut()
    if (work.has_replays) await this.#queues.replay()
    if (work.is_woken) await this.#queues.wake()
    const [healthy, failing] = [this.#claimOf('healthy'), this.#claimOf('failing')]
    const isDue =
      work.is_woken || (work.has_healthy && healthy.most > 0) || (work.has_failing && failing.most > 0)
    if (!isDue || this.#runDeps.results.isBehind) return { isBusy: false, ...this.#idleTimeOf(work) }
    const claimed = await this.#queues.claim({ healthy, failing })
    for (const queue of claimed) this.#startRun(queue)
    return { isBusy: claimed.length > 0 }
  }

  #idleTimeOf({ next_due_ms, ...work }: Work): { idleForMs?: number } {
    if (this.#runs.size > 0 || Object.values(work).includes(true)) return {}
    return { idleForMs: Math.min(this.#idlePollMs, next_due_ms ?? this.#idlePollMs) }
  }

  /** Runs concurrently with the queues: a project with a slow fan-out does not delay existing deliveries. */
  #startFanOut(): void {
    this.#fanningOut ??= this.#fanOutOnce().finally(() => {
      this.#fanningOut = undefined
    })
  }

  async #fanOutOnce(): Promise<void> {
    try {
      if ((await this.#fanOut.step()) > 0) return
    } catch (error) {
      this.#log.error({ err: error }, 'webhook fan-out failed; retrying')
    }
    // No progress was made: every project failed, or another worker holds the lock.
    await sleep(idleMs.most, undefined, { signal: this.#stopping.signal }).catch(() => {})
  }

  #claimOf(health: keyof SlotCounts): Claim {
    const share = this.#shares[health]
    const free = Math.max(0, this.#maxRuns - this.#runs.size)
    const atOnce = health === 'healthy' ? share : Math.min(share, maxFailingClaims)
    const most = Math.min(free, atOnce, Math.max(0, this.#slots.free(health)))
    const counts = new Map<number, number>()
    for (const { project_id, is_healthy } of this.#runs.values()) {
      if (is_healthy === (health === 'healthy')) counts.set(project_id, (counts.get(project_id) ?? 0) + 1)
    }
    return { most, notOf: [...counts].flatMap(([id, count]) => (count >= share ? [id] : [])) }
  }

  #startRun(queue: ClaimedQueue): void {
    const run = new DeliveryRun(queue, this.#runDeps, this.#stopping.signal)
      .run()
      .catch((error: unknown) => this.#log.error({ err: error }, 'webhook delivery run failed'))
      .finally(() => this.#runs.delete(run))
    this.#runs.set(run, queue)
  }
}
