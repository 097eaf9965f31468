import { setTimeout as sleep } from 'node:timers/promises'
import type { Dispatcher } from 'undici'
import type { Vault } from '../core/control/secrets/vault.ts'
import { DeliveryResults } from '../core/mail/webhooks/delivery-results.ts'
import { DeliveryRun, type DeliveryRunDeps } from '../core/mail/webhooks/delivery-run.ts'
import { type Claim, type ClaimedQueue, EndpointQueues } from '../core/mail/webhooks/endpoint-queues.ts'
import { FanOut } from '../core/mail/webhooks/fan-out.ts'
import { PendingDeliveries } from '../core/mail/webhooks/pending-deliveries.ts'
import { requestMs } from '../core/mail/webhooks/post.ts'
import { type RetryDelay, retryDelayMs as usualRetryDelayMs } from '../core/mail/webhooks/retry-schedule.ts'
import { defaultSlots, type SlotCounts, WebhookSlots } from '../core/mail/webhooks/slots.ts'
import { Targets } from '../core/mail/webhooks/targets.ts'
import type { UnscopedDb } from '../platform/db/db.ts'
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
  log: Logger
}

/** Polling interval of an idle worker. */
const idleMs = { least: 50, most: 250 }
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
  }: WebhookDispatcherDeps) {
    this.#log = log
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
      agent: this.#agent,
      userAgent,
      pending: new PendingDeliveries(db),
      targets: new Targets(db, vault),
      slots: this.#slots,
      results: new DeliveryResults(db, (error, lost) =>
        log.error({ err: error, lost }, 'webhook results could not be recorded'),
      ),
      random,
      requestTimeoutMs,
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
    let idle = idleMs.least
    while (!signal.aborted) {
      try {
        const isBusy = await this.#step()
        idle = isBusy ? idleMs.least : Math.min(idleMs.most, idle * 2)
        const pause = isBusy ? 0 : this.#runs.size > 0 ? busyMs : idle
        const paused = sleep(pause, undefined, { signal }).catch(() => {})
        await Promise.race([paused, this.#fanningOut ?? paused])
      } catch (error) {
        this.#log.error({ err: error }, 'endpoint queues cannot be read; retrying')
        await sleep(failureMs, undefined, { signal }).catch(() => {})
      }
    }
  }

  /** Returns true if there was work. */
  async #step(): Promise<boolean> {
    const work = await this.#queues.findWork()
    if (work.has_fan_outs) this.#startFanOut()
    if (work.has_replays) await this.#queues.replay()
    if (work.is_woken) await this.#queues.wake()
    const [healthy, failing] = [this.#claimOf('healthy'), this.#claimOf('failing')]
    const isDue =
      work.is_woken || (work.has_healthy && healthy.most > 0) || (work.has_failing && failing.most > 0)
    if (!isDue || this.#runDeps.results.isBehind) return false
    const claimed = await this.#queues.claim({ healthy, failing })
    for (const queue of claimed) this.#startRun(queue)
    return claimed.length > 0
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
