import type { Dispatcher } from 'undici'
import type { UnscopedDb } from '../../../platform/db/db.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { Counter, DurationHistogram } from '../../../platform/telemetry/metrics.ts'
import { follow, readStoredTrace, SpanKind } from '../../../platform/telemetry/tracing.ts'
import { type Cursor, dropDeliveries, type EventRow, giveUpOld, type Result } from './deliveries.sql.ts'
import type { DeliveryResult, DeliveryResults } from './delivery-results.ts'
import { type ClaimedQueue, deleteQueue, lockLeased } from './endpoint-queues.sql.ts'
import { maxPrefetched, type PendingDeliveries, type PendingDelivery } from './pending-deliveries.ts'
import { post, type ReceiverResponse } from './post.ts'
import type { RetryDelay } from './retry-schedule.ts'
import { signedHeaders } from './signature.ts'
import type { WebhookSlots } from './slots.ts'
import type { Targets } from './targets.ts'

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
  agent: Dispatcher
  /** `Postern/<version>` */
  userAgent: string
  pending: PendingDeliveries
  targets: Targets
  slots: WebhookSlots
  results: DeliveryResults
  /** From 0 (inclusive) to 1 (exclusive). */
  random: () => number
  /** Timeout for a request, from the DNS lookup to the response status. */
  requestTimeoutMs: number
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

type DeliveryWithEvent = PendingDelivery & { event: EventRow }

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
  #cursor: Cursor | undefined
  #prefetched: PendingDelivery[] = []
  #isPrefetching = false
  #isExhausted = false
  #inFlight = 0
  #hasSucceeded = false
  #failuresInARow = 0
  #backoffMs = 0
  /** The reason why no more requests are started. */
  #end: 'gone' | 'inactive' | 'deleted' | 'retry_after' | 'error' | undefined
  #resume: (() => void) | undefined
  readonly #onChange = (): void => this.#resume?.()

  constructor(queue: ClaimedQueue, deps: DeliveryRunDeps, stopping: AbortSignal) {
    this.#queue = queue
    this.#deps = deps
    this.#stopping = stopping
    this.#isFailing = !queue.is_healthy
    this.#isConcurrent = queue.is_healthy && !queue.is_new
    // The same jitter is used for the whole run, so a single waiting event is due at the same time as its
    // queue.
    this.#random = deps.random()
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
      if (this.#isFailing) slots.releaseFailing()
    }
    await this.#release()
  }

  async #send(): Promise<void> {
    while (this.#mayStart() || this.#inFlight > 0 || this.#isPrefetching) {
      const hasStarted = this.#mayStart() && this.#startOne()
      if (!hasStarted) await this.#waitForChange()
    }
  }

  #mayStart(): boolean {
    const { results } = this.#deps
    return (
      this.#end === undefined &&
      !this.#stopping.aborted &&
      !results.isBehind &&
      performance.now() - this.#startedAt < runMs &&
      this.#failuresInARow < maxFailuresInARow &&
      !(this.#isExhausted && this.#prefetched.length === 0) &&
      // A failing or new endpoint gets one attempt.
      (this.#isConcurrent || this.#failuresInARow === 0)
    )
  }

  /** Returns false if no request can be started now. */
  #startOne(): boolean {
    const { slots } = this.#deps
    this.#prefetch()
    if (this.#prefetched.length === 0) return false
    if (!this.#isConcurrent && this.#inFlight > 0) return false
    const takesSlot = !this.#isFailing
    if (takesSlot && !slots.tryTake(this.#inFlight, this.#queue.project_id)) {
      if (this.#inFlight === 0) slots.onFree(this.#onChange, this.#queue.project_id)
      return false
    }
    const delivery = this.#prefetched.shift()
    if (delivery) void this.#deliver(delivery, takesSlot)
    return true
  }

  #prefetch(): void {
    if (this.#isPrefetching || this.#isExhausted || this.#prefetched.length > maxPrefetched / 2) return
    this.#isPrefetching = true
    const most = this.#isConcurrent ? maxPrefetched : 1
    void this.#deps.pending
      .next({ ...this.#queue, after: this.#cursor, most })
      .then((pending) => {
        const last = pending.at(-1)?.due
        if (last) this.#cursor = { due_at: last.due_at, event_id: last.event_id }
        this.#isExhausted = pending.length < most
        this.#prefetched.push(...pending)
      })
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#isPrefetching = false
        this.#onChange()
      })
  }

  /** Waits until a request or a prefetch ends, or a slot becomes free. */
  async #waitForChange(): Promise<void> {
    if (this.#inFlight === 0 && !this.#isPrefetching && !this.#mayStart()) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#resume = resolve
      timer = setTimeout(resolve, pollMs)
    })
    clearTimeout(timer)
    this.#resume = undefined
  }

  async #deliver(delivery: PendingDelivery, hasSlot: boolean): Promise<void> {
    this.#inFlight++
    try {
      if (delivery.event) await this.#attempt({ ...delivery, event: delivery.event })
      else this.#write([skipped(delivery)])
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#inFlight--
      if (hasSlot) this.#deps.slots.release(this.#queue.project_id)
      this.#onChange()
    }
  }

  async #attempt(delivery: DeliveryWithEvent): Promise<void> {
    const { pending, targets, agent, userAgent, requestTimeoutMs } = this.#deps
    await pending.withBody(delivery, this.#isFailing ? 'failing' : 'healthy', async (body) => {
      const target = await targets.of(this.#queue)
      if (target === 'gone' || target === 'inactive') {
        this.#end ??= target === 'gone' ? 'deleted' : 'inactive'
        return
      }
      // The delivery may have waited for the byte budget or for the database.
      if (performance.now() - this.#startedAt > startWithinMs) return
      const startedAt = performance.now()
      const headers = {
        'content-type': 'application/json',
        'user-agent': userAgent,
        ...signedHeaders(target.key, delivery.event.id, target.nowSeconds, body),
      }
      const span = follow(readStoredTrace(delivery.notes?.trace), 'webhook', {
        kind: SpanKind.CLIENT,
        attributes: {
          'postern.endpoint_id': this.#queue.endpoint_id,
          'postern.event_type': delivery.event.type,
          'postern.attempt': delivery.due.attempt + 1,
        },
      })
      const response = await post(agent, target.url, headers, body, requestTimeoutMs)
      if (response.status !== null) span?.setAttribute('http.response.status_code', response.status)
      span?.end()
      this.#handleResponse(delivery, response, startedAt)
    })
  }

  #handleResponse(
    { due, event, readAt }: DeliveryWithEvent,
    received: ReceiverResponse,
    startedAt: number,
  ): void {
    const { status, latencyMs, response, error } = received
    responseSeconds.observe({}, latencyMs)
    const attempt = due.attempt + 1
    const base = {
      ...{ event_id: event.id, event_type: event.type, attempt, status, latencyMs, response, error },
      startedAt,
    }
    if (status !== null && status >= 200 && status < 300) {
      this.#failuresInARow = 0
      const isFirst = !this.#hasSucceeded
      this.#hasSucceeded = true
      if (!this.#isConcurrent) this.#markHealthy()
      this.#write([{ ...base, outcome: 'delivered', retryMs: null }], isFirst)
      return
    }
    this.#failuresInARow++
    if (status === 410) {
      this.#end = 'gone'
      this.#write([{ ...base, outcome: 'gone', retryMs: null }])
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
    this.#write([{ ...base, outcome: isLast ? 'given_up' : 'failed', retryMs: isLast ? null : retryMs }])
  }

  #markHealthy(): void {
    this.#isConcurrent = true
    // Until now, deliveries were read one at a time.
    this.#isExhausted = false
    if (!this.#isFailing) return
    this.#isFailing = false
    this.#deps.slots.releaseFailing()
  }

  #write(results: Result[], hasSucceeded = false): void {
    for (const { outcome } of results) {
      if (outcome !== 'skipped') attemptCount.add({ outcome })
    }
    void this.#record({ queue: this.#queue, results, hasSucceeded })
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
