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
import { defaultSlots, type SlotCounts, Slots } from '../core/mail/webhooks/slots.ts'
import { Targets } from '../core/mail/webhooks/targets.ts'
import type { UnscopedDb } from '../platform/db/db.ts'
import type { NetGuard } from '../platform/net/net-guard.ts'
import type { Logger } from '../platform/telemetry/log.ts'

/**
 * Tells endpoints what happened: takes queues that are due, and has a round with each (core/mail/webhooks/delivery-run.ts). What
 * waits and who has it is all in the database; a worker that dies is missed when its leases are over.
 */
export interface WebhookDispatcherDeps {
  /** Of the role that writes mail. */
  db: UnscopedDb
  vault: Vault
  guard: NetGuard
  /** `Postern/<version>` */
  userAgent: string
  places?: SlotCounts
  random?: () => number
  /** Tests set these two: then no request times out and no retry is due before the test lets time pass. */
  requestTimeoutMs?: number | undefined
  retryDelayMs?: RetryDelay | undefined
  log: Logger
}

/** With nothing to do, queues are looked at this often. */
const idleMs = { least: 50, most: 250 }
/** While rounds are under way, others are looked for this often. */
const busyMs = 20
const failureMs = 1_000
const connectMs = 5_000
/**
 * A part of the places: as many rounds begin with one claim, and as many may a project have before it has to wait. It
 * may have many endpoints, and all of them slow.
 */
const claimedShare = 4
/**
 * Of those that failed. A hundred that never answer end in the same moment, and a hundred handshakes begun in the next
 * would keep the thread from everybody else.
 */
const triedAtOnce = 10

export class WebhookDispatcher {
  readonly #log: Logger
  readonly #agent: Dispatcher
  readonly #queues: EndpointQueues
  readonly #fanOut: FanOut
  readonly #places: Slots
  readonly #round: DeliveryRunDeps
  readonly #rounds = new Map<Promise<void>, ClaimedQueue>()
  readonly #shares: SlotCounts
  readonly #roundsAtMost: number
  readonly #stopping = new AbortController()
  #fanningOut: Promise<void> | undefined
  #running: Promise<void> | undefined

  constructor({
    db,
    vault,
    guard,
    userAgent,
    log,
    places = defaultSlots,
    random = Math.random,
    requestTimeoutMs = requestMs,
    retryDelayMs = usualRetryDelayMs,
  }: WebhookDispatcherDeps) {
    this.#log = log
    this.#queues = new EndpointQueues(db)
    this.#fanOut = new FanOut(db, (error, projectId) =>
      log.error({ err: error, project_id: projectId }, 'webhook fan-out failed; retrying'),
    )
    this.#places = new Slots(places)
    this.#shares = {
      proven: Math.ceil(places.proven / claimedShare),
      unproven: Math.ceil(places.unproven / claimedShare),
    }
    this.#roundsAtMost = places.proven + places.unproven
    this.#agent = guard.agent({
      connectTimeoutMs: connectMs,
      headersTimeoutMs: requestTimeoutMs,
      bodyTimeoutMs: requestTimeoutMs,
      // Endpoints of many projects may be at one host: none waits for a connection there. Slots are the limit.
      connectionsPerOrigin: this.#roundsAtMost,
    })
    this.#round = {
      db,
      agent: this.#agent,
      userAgent,
      letters: new PendingDeliveries(db),
      targets: new Targets(db, vault),
      places: this.#places,
      reports: new DeliveryResults(db, (error, lost) =>
        log.error({ err: error, lost }, 'what became of some webhooks could not be written down'),
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

  /** Nothing new is begun; what is under way is finished. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
    await this.#fanningOut
    await Promise.all(this.#rounds.keys())
    await this.#agent.destroy()
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    let idle = idleMs.least
    while (!signal.aborted) {
      try {
        const isBusy = await this.#step()
        idle = isBusy ? idleMs.least : Math.min(idleMs.most, idle * 2)
        const pause = isBusy ? 0 : this.#rounds.size > 0 ? busyMs : idle
        const paused = sleep(pause, undefined, { signal }).catch(() => {})
        await Promise.race([paused, this.#fanningOut ?? paused])
      } catch (error) {
        this.#log.error({ err: error }, 'the queues of endpoints cannot be read; tried again')
        await sleep(failureMs, undefined, { signal }).catch(() => {})
      }
    }
  }

  /** Whether there was something to do. */
  async #step(): Promise<boolean> {
    const work = await this.#queues.look()
    if (work.has_fan_outs) this.#startFanOut()
    if (work.has_replays) await this.#queues.replay()
    if (work.is_woken) await this.#queues.wake()
    const [proven, unproven] = [this.#claimOf('proven'), this.#claimOf('unproven')]
    const isDue =
      work.is_woken || (work.has_proven && proven.most > 0) || (work.has_unproven && unproven.most > 0)
    if (!isDue || this.#round.reports.isBehind) return false
    const claimed = await this.#queues.claim({ proven, unproven })
    for (const queue of claimed) this.#begin(queue)
    return claimed.length > 0
  }

  /** Beside the queues: a project whose turn takes long keeps no endpoint waiting that has deliveries. */
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
    // Nothing could be done: every project failed, or another worker has it.
    await sleep(idleMs.most, undefined, { signal: this.#stopping.signal }).catch(() => {})
  }

  #claimOf(standing: keyof SlotCounts): Claim {
    const share = this.#shares[standing]
    const room = Math.max(0, this.#roundsAtMost - this.#rounds.size)
    const atOnce = standing === 'proven' ? share : Math.min(share, triedAtOnce)
    const most = Math.min(room, atOnce, Math.max(0, this.#places.free(standing)))
    const counts = new Map<number, number>()
    for (const { project_id, is_proven } of this.#rounds.values()) {
      if (is_proven === (standing === 'proven')) counts.set(project_id, (counts.get(project_id) ?? 0) + 1)
    }
    return { most, notOf: [...counts].flatMap(([id, count]) => (count >= share ? [id] : [])) }
  }

  #begin(queue: ClaimedQueue): void {
    const round = new DeliveryRun(queue, this.#round, this.#stopping.signal)
      .run()
      .catch((error: unknown) => this.#log.error({ err: error }, 'a round of webhooks failed'))
      .finally(() => this.#rounds.delete(round))
    this.#rounds.set(round, queue)
  }
}
