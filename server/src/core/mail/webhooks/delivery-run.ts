import type { UnscopedDb } from '../../../platform/db/db.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { Counter, DurationHistogram } from '../../../platform/telemetry/metrics.ts'
import { follow, readStoredTrace, type Span, SpanKind } from '../../../platform/telemetry/tracing.ts'
import { dropDeliveries, giveUpOld, type Result } from './deliveries.sql.ts'
import type { DeliveryResult, DeliveryResults } from './delivery-results.ts'
import { type ClaimedQueue, deleteQueue, lockLeased } from './endpoint-queues.sql.ts'
import type { DeliveryWithEvent, PendingDeliveries, PendingDelivery } from './pending-deliveries.ts'
import { Prefetch } from './prefetch.ts'
import type { RetryDelay } from './retry-schedule.ts'
import { signedHeaders, type WebhookBody } from './signature.ts'
import type { WebhookSlots } from './slots.ts'
import type { Target, TargetLookup, Targets } from './targets.ts'
import type { ReceiverResponse, WebhookClient } from './webhook-client.ts'

// One run over an endpoint's leased queue, from the claim to the release.
//
// A failing or new endpoint gets a single delivery, the one that is longest overdue. After that delivery
// succeeds, or if the endpoint is healthy, deliveries are sent with a concurrency of ten until nothing is
// due, ten seconds have passed, or ten consecutive deliveries have failed. Every request that starts within
// those ten seconds ends well before the one-minute lease expires, so leases are never renewed.

const attemptCount = new Counter('postern_webhook_attempts_total', 'Webhook requests, by outcome.', {
  outcome: ['delivered', 'failed', 'given_up', 'gone'],
})
const responseSeconds = new DurationHistogram(
  'postern_webhook_duration_seconds',
  'Response time of endpoints.',
  {},
  [0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15],
)

export interface DeliveryRunDeps {
  db: UnscopedDb
  client: WebhookClient
  /** `Postern/<version>` */
  userAgent: string
  pending: PendingDeliveries
  targets: Targets
  slots: WebhookSlots
  results: DeliveryResults
  /** From 0 (inclusive) to 1 (exclusive). */
  random: () => number
  retryDelayMs: RetryDelay
  log: Logger
}

export const leaseSeconds = 60
const runMs = 10_000
/** Consecutive failures that end the run. */
const maxFailuresInARow = 10
/** An inactive endpoint's queue is claimed at this interval to abandon expired deliveries. */
const inactiveBackoffMs = 3_600_000
/**
 * After a 410, nothing is sent until the control side has disabled the endpoint. The deliveries are
 * retained in case the endpoint is enabled again.
 */
const goneBackoffMs = 300_000
/** After an internal error. */
const errorBackoffMs = 5_000
const deletedAtOnce = 5_000

/** `hasSlot`: it uses one of the slots for healthy endpoints. */
interface Started extends PendingDelivery {
  hasSlot: boolean
}

type StartedWithEvent = Started & DeliveryWithEvent

const hasEvent = (delivery: Started): delivery is StartedWithEvent => delivery.event !== undefined

export class DeliveryRun {
  readonly #queue: ClaimedQueue
  readonly #deps: DeliveryRunDeps
  readonly #startedAt = performance.now()
  readonly #random: number
  readonly #stopping: AbortSignal
  /** The last run failed; this run uses a slot for failing endpoints. */
  #isFailing: boolean
  /** A delivery has succeeded, either before or during this run, so several can be sent concurrently. */
  #isConcurrent: boolean
  readonly #prefetch: Prefetch
  #inFlight = 0
  #hasSucceeded = false
  #failuresInARow = 0
  #backoffMs = 0
  /** The reason why no more requests are started. */
  #end: 'gone' | 'inactive' | 'deleted' | 'retry_after' | 'error' | undefined
  /** The endpoint's next lookup, and the deliveries that wait for it. */
  #lookup: Promise<TargetLookup> | undefined
  #waitingForLookup: StartedWithEvent[] = []
  #isStarting = false
  /** Set while requests are sent; after that, no request may start. */
  #resolveSent: (() => void) | undefined
  readonly #onChange = (): void => this.#advance()

  constructor(queue: ClaimedQueue, deps: DeliveryRunDeps, stopping: AbortSignal) {
    this.#queue = queue
    this.#deps = deps
    this.#stopping = stopping
    this.#isFailing = !queue.is_healthy
    this.#isConcurrent = queue.is_healthy && !queue.is_new
    // The same jitter is used for the whole run, so a single waiting event is due at the same time as its
    // queue.
    this.#random = deps.random()
    this.#prefetch = new Prefetch(queue, deps.pending, (error) => {
      if (error !== undefined) this.#fail(error)
      this.#advance()
    })
  }

  /** Resolves when the queue is released. */
  async run(): Promise<void> {
    const { slots } = this.#deps
    if (this.#isFailing) slots.takeFailing()
    try {
      // Only if needed: running a transaction for each of a hundred dead endpoints would delay the other
      // endpoints' statements.
      if (this.#queue.has_old) await this.#giveUpOld()
      await this.#send()
    } catch (error) {
      this.#fail(error)
    } finally {
      slots.cancelWait(this.#onChange)
      this.#prefetch.close()
      if (this.#isFailing) slots.releaseFailing()
    }
    await this.#release()
  }

  /** Resolves when no request is in flight and no more may start. */
  async #send(): Promise<void> {
    const poll = setInterval(() => this.#advance(), pollMs)
    try {
      await new Promise<void>((resolve) => {
        this.#resolveSent = resolve
        this.#advance()
      })
    } finally {
      clearInterval(poll)
    }
  }

  /** Starts what may start. Called when a request or a prefetch ends, and when a slot becomes free. */
  #advance(): void {
    // A delivery that is skipped ends while it is started.
    if (this.#isStarting || this.#resolveSent === undefined) return
    this.#isStarting = true
    while (this.#mayStart() && this.#startOne()) {}
    this.#isStarting = false
    if (this.#inFlight > 0 || this.#prefetch.isReading || this.#mayStart()) return
    this.#resolveSent()
    this.#resolveSent = undefined
  }

  #mayStart(): boolean {
    const { results } = this.#deps
    return (
      this.#end === undefined &&
      !this.#stopping.aborted &&
      !results.isBehind &&
      performance.now() - this.#startedAt < runMs &&
      this.#failuresInARow < maxFailuresInARow &&
      !this.#prefetch.isExhausted &&
      // A failing or new endpoint gets one attempt.
      (this.#isConcurrent || this.#failuresInARow === 0)
    )
  }

  /** Returns false if no request can be started now. */
  #startOne(): boolean {
    const { slots } = this.#deps
    if (!this.#isConcurrent && this.#inFlight > 0) return false
    this.#prefetch.fill({ isSingle: !this.#isConcurrent })
    if (this.#prefetch.isEmpty) return false
    const hasSlot = !this.#isFailing
    if (hasSlot && !slots.tryTake(this.#inFlight, this.#queue.project_id)) {
      if (this.#inFlight === 0) slots.onFree(this.#onChange, this.#queue.project_id)
      return false
    }
    const delivery = this.#prefetch.take()
    this.#inFlight++
    this.#start({ ...delivery, hasSlot })
    return true
  }

  #start(delivery: Started): void {
    if (!hasEvent(delivery)) {
      this.#write(skipped(delivery))
      this.#finish(delivery)
    } else if (delivery.event.data === null) {
      void this.#sendLong(delivery)
    } else {
      this.#sendWithNextLookup(delivery)
    }
  }

  /** Deliveries that start before the lookup of their endpoint share it. */
  #sendWithNextLookup(delivery: StartedWithEvent): void {
    const lookup = this.#deps.targets.of(this.#queue)
    if (lookup === this.#lookup) {
      this.#waitingForLookup.push(delivery)
      return
    }
    const group = [delivery]
    this.#lookup = lookup
    this.#waitingForLookup = group
    lookup.then(
      (target) => this.#sendGroup(group, target),
      (error: unknown) => {
        this.#fail(error)
        for (const one of group) this.#finish(one)
      },
    )
  }

  #sendGroup(group: readonly StartedWithEvent[], target: TargetLookup): void {
    for (const delivery of group) {
      try {
        if (!this.#isSendable(target)) this.#finish(delivery)
        else this.#post(delivery, target, this.#deps.pending.bodyOf(delivery), () => this.#finish(delivery))
      } catch (error) {
        this.#fail(error)
        this.#finish(delivery)
      }
    }
  }

  async #sendLong(delivery: StartedWithEvent): Promise<void> {
    const { pending, targets } = this.#deps
    try {
      await pending.withBody(delivery, this.#isFailing ? 'failing' : 'healthy', async (body) => {
        const target = await targets.of(this.#queue)
        if (!this.#isSendable(target)) return
        await new Promise<void>((resolve) => this.#post(delivery, target, body, resolve))
      })
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#finish(delivery)
    }
  }

  #isSendable(target: TargetLookup): target is Target {
    if (target === 'gone' || target === 'inactive') {
      this.#end ??= target === 'gone' ? 'deleted' : 'inactive'
      return false
    }
    // The delivery may have waited for the byte budget or for the database.
    return performance.now() - this.#startedAt <= startWithinMs
  }

  #post(delivery: StartedWithEvent, target: Target, body: WebhookBody, done: () => void): void {
    const { client, userAgent } = this.#deps
    const { event } = delivery
    const { origin, path, key, nowSeconds } = target
    const headers = {
      'content-type': 'application/json',
      'user-agent': userAgent,
      ...signedHeaders(key, event.id, nowSeconds, body),
    }
    const startedAt = performance.now()
    const span = this.#spanOf(delivery)
    client.post({ origin, path, headers, body }, (response) => {
      try {
        if (response.status !== null) span?.setAttribute('http.response.status_code', response.status)
        span?.end()
        this.#handleResponse(delivery, response, startedAt)
      } catch (error) {
        this.#fail(error)
      }
      done()
    })
  }

  #spanOf({ due, event, notes }: StartedWithEvent): Span | undefined {
    const parent = readStoredTrace(notes?.trace)
    if (!parent) return undefined
    return follow(parent, 'webhook', {
      kind: SpanKind.CLIENT,
      attributes: {
        'postern.endpoint_id': this.#queue.endpoint_id,
        'postern.event_type': event.type,
        'postern.attempt': due.attempt + 1,
      },
    })
  }

  #finish({ hasSlot }: Started): void {
    this.#inFlight--
    if (hasSlot) this.#deps.slots.release(this.#queue.project_id)
    this.#advance()
  }

  #handleResponse(
    { due, event, readAt }: StartedWithEvent,
    received: ReceiverResponse,
    startedAt: number,
  ): void {
    const { status, latencyMs, response, error } = received
    responseSeconds.observe({}, latencyMs)
    const attempt = due.attempt + 1
    const write = (outcome: Result['outcome'], retryMs: number | null, isFirstSuccess = false) =>
      this.#write(
        {
          event_id: event.id,
          event_type: event.type,
          attempt,
          outcome,
          status,
          latencyMs,
          response,
          error,
          retryMs,
          startedAt,
        },
        isFirstSuccess,
      )
    if (status !== null && status >= 200 && status < 300) {
      this.#failuresInARow = 0
      const isFirst = !this.#hasSucceeded
      this.#hasSucceeded = true
      if (!this.#isConcurrent) this.#markHealthy()
      write('delivered', null, isFirst)
      return
    }
    this.#failuresInARow++
    if (status === 410) {
      this.#end = 'gone'
      write('gone', null)
      return
    }
    const retryAfterMs = status === 429 || status === 503 ? received.retryAfterMs : undefined
    if (retryAfterMs !== undefined) {
      this.#end ??= 'retry_after'
      this.#backoffMs = Math.max(this.#backoffMs, retryAfterMs)
    }
    // The last attempt is made when the event expires, even if that is shortly after this attempt.
    const leftMs = due.left_ms - (performance.now() - readAt)
    const retryMs = Math.min(
      Math.max(this.#deps.retryDelayMs(attempt, this.#random), retryAfterMs ?? 0),
      leftMs,
    )
    const isLast = leftMs <= 0
    write(isLast ? 'given_up' : 'failed', isLast ? null : retryMs)
  }

  #markHealthy(): void {
    this.#isConcurrent = true
    // Until now, deliveries were read one at a time.
    this.#prefetch.readAgain()
    if (!this.#isFailing) return
    this.#isFailing = false
    this.#deps.slots.releaseFailing()
  }

  #write(result: Result, hasSucceeded = false): void {
    const { outcome } = result
    if (outcome !== 'skipped') attemptCount.add({ outcome })
    void this.#record({ queue: this.#queue, results: [result], hasSucceeded })
  }

  #record(result: DeliveryResult): Promise<void> {
    return this.#deps.results.write(result, this.#startedAt + leaseSeconds * 1000)
  }

  async #release(): Promise<void> {
    if (this.#end === 'deleted') {
      await this.#drop().catch((error: unknown) => this.#fail(error))
      return
    }
    const hasFailed =
      this.#end === 'gone' || this.#failuresInARow >= (this.#hasSucceeded ? maxFailuresInARow : 1)
    const failures = this.#hasSucceeded ? 1 : this.#queue.failures + 1
    const backoffMs = Math.max(
      this.#backoffMs,
      hasFailed ? this.#deps.retryDelayMs(failures, this.#random) : 0,
      this.#endBackoffMs(),
    )
    if (this.#end === 'inactive') await this.#giveUpOld().catch((error: unknown) => this.#fail(error))
    await this.#record({
      queue: this.#queue,
      results: [],
      hasSucceeded: this.#hasSucceeded,
      release: { hasFailed, isGone: this.#end === 'gone', backoffMs },
    })
  }

  #endBackoffMs(): number {
    if (this.#end === 'inactive') return inactiveBackoffMs
    if (this.#end === 'gone') return goneBackoffMs
    return this.#end === 'error' ? errorBackoffMs : 0
  }

  /** Deletes all deliveries in steps, each only while this worker still holds the lease. */
  async #drop(): Promise<void> {
    await this.#inSteps((tx) => dropDeliveries(tx, this.#queue, deletedAtOnce))
    await this.#deps.db.transaction(async (tx) => {
      if ((await lockLeased(tx, [this.#queue])).size > 0) await deleteQueue(tx, this.#queue)
    })
  }

  #giveUpOld(): Promise<void> {
    return this.#inSteps((tx) => giveUpOld(tx, this.#queue, deletedAtOnce))
  }

  async #inSteps(step: (tx: Parameters<typeof giveUpOld>[0]) => Promise<number>): Promise<void> {
    let done = deletedAtOnce
    while (done === deletedAtOnce) {
      done = await this.#deps.db.transaction(async (tx) =>
        (await lockLeased(tx, [this.#queue])).size > 0 ? step(tx) : 0,
      )
    }
  }

  #fail(error: unknown): void {
    // Logged once, regardless of how many requests are affected.
    if (this.#end === 'error') return
    this.#end ??= 'error'
    const { endpoint_id, project_id } = this.#queue
    this.#deps.log.error({ err: error, endpoint_id, project_id }, 'webhook delivery run failed; retrying')
  }
}

/** A request that has not started within this time is left for the next run. */
const startWithinMs = 30_000
/** The end of the ten seconds is detected by polling. */
const pollMs = 1_000

const skipped = ({ due }: PendingDelivery): Result => ({
  ...{ event_id: due.event_id, event_type: '', attempt: due.attempt, outcome: 'skipped' },
  ...{ status: null, latencyMs: 0, response: null, error: null, retryMs: null, startedAt: performance.now() },
})
