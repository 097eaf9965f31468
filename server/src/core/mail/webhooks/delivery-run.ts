import type { Dispatcher } from 'undici'
import type { UnscopedDb } from '../../../platform/db/db.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { metrics } from '../../../platform/telemetry/metrics.ts'
import { follow, readStoredTrace, SpanKind } from '../../../platform/telemetry/tracing.ts'
import { type Cursor, dropDeliveries, type EventRow, giveUpOld, type Result } from './deliveries.sql.ts'
import type { DeliveryResult, DeliveryResults } from './delivery-results.ts'
import { type ClaimedQueue, deleteQueue, lockLeased } from './endpoint-queues.sql.ts'
import { aheadAtMost, type PendingDeliveries, type PendingDelivery } from './pending-deliveries.ts'
import { post, type ReceiverResponse } from './post.ts'
import type { RetryDelay } from './retry-schedule.ts'
import { signedHeaders } from './signature.ts'
import type { Slots } from './slots.ts'
import type { Targets } from './targets.ts'

/**
 * What a worker does with an endpoint's queue between taking and giving it back.
 *
 * One that did not answer well the last time, or was never asked, is tried with a single delivery, the one that has been
 * due for longest. Once that is taken, or if the endpoint is known to answer, deliveries go out ten at a time until
 * nothing is due, ten seconds have passed, or ten in a row failed. Whatever begins within those ten seconds has ended long
 * before the lease of a minute, so no lease is ever renewed.
 */
export interface DeliveryRunDeps {
  db: UnscopedDb
  agent: Dispatcher
  /** `Postern/<version>` */
  userAgent: string
  letters: PendingDeliveries
  targets: Targets
  places: Slots
  reports: DeliveryResults
  /** From 0 to just below 1. */
  random: () => number
  /** From the look-up of a receiver's name to its status. */
  requestTimeoutMs: number
  retryDelayMs: RetryDelay
  log: Logger
}

export const leaseSeconds = 60
const roundMs = 10_000
/** So many in a row, and it does not answer any more. */
const failuresAtMost = 10
/** An endpoint that is switched off is looked at this often, for what has waited too long. */
const inactiveRestMs = 3_600_000
/** It said 410: until control has switched it off, nothing is sent. What waits does so for whoever switches it on again. */
const goneRestMs = 300_000
/** Something of our own went wrong. */
const troubleRestMs = 5_000
const deletedAtOnce = 5_000

type Sent = PendingDelivery & { event: EventRow }

export class DeliveryRun {
  readonly #queue: ClaimedQueue
  readonly #deps: DeliveryRunDeps
  readonly #startedAt = performance.now()
  readonly #random: number
  readonly #stopping: AbortSignal
  /** It failed the last time, and has a place of those that did. */
  #isFailing: boolean
  /** It has answered well, before or in this round: several at once may be sent. */
  #isTrusted: boolean
  #cursor: Cursor | undefined
  #ahead: PendingDelivery[] = []
  #isReading = false
  #isExhausted = false
  #underWay = 0
  #hasTaken = false
  #failuresInARow = 0
  #restMs = 0
  /** Why nothing more is begun. */
  #end: 'gone' | 'inactive' | 'deleted' | 'asked to' | 'trouble' | undefined
  #next: (() => void) | undefined
  readonly #onNews = (): void => this.#next?.()

  constructor(queue: ClaimedQueue, deps: DeliveryRunDeps, stopping: AbortSignal) {
    this.#queue = queue
    this.#deps = deps
    this.#stopping = stopping
    this.#isFailing = !queue.is_proven
    this.#isTrusted = queue.is_proven && !queue.is_new
    // One for all that fails in it, so that an event that waits alone is due when its queue is.
    this.#random = deps.random()
  }

  /** Resolves when the queue is given back. */
  async run(): Promise<void> {
    const { places } = this.#deps
    if (this.#isFailing) places.takeUnproven()
    try {
      // Only then: a transaction for each of a hundred that are dead keeps the others' statements waiting.
      if (this.#queue.has_old) await this.#giveUpOld()
      await this.#send()
    } catch (error) {
      this.#trouble(error)
    } finally {
      places.forget(this.#onNews)
      if (this.#isFailing) places.leaveUnproven()
    }
    await this.#release()
  }

  async #send(): Promise<void> {
    while (this.#mayBegin() || this.#underWay > 0 || this.#isReading) {
      const began = this.#mayBegin() && this.#beginOne()
      if (!began) await this.#news()
    }
  }

  #mayBegin(): boolean {
    const { reports } = this.#deps
    return (
      this.#end === undefined &&
      !this.#stopping.aborted &&
      !reports.isBehind &&
      performance.now() - this.#startedAt < roundMs &&
      this.#failuresInARow < failuresAtMost &&
      !(this.#isExhausted && this.#ahead.length === 0) &&
      // One that is yet to prove itself has one try.
      (this.#isTrusted || this.#failuresInARow === 0)
    )
  }

  /** False when there is nothing to begin with at this moment. */
  #beginOne(): boolean {
    const { places } = this.#deps
    this.#readAhead()
    if (this.#ahead.length === 0) return false
    if (!this.#isTrusted && this.#underWay > 0) return false
    const takesPlace = !this.#isFailing
    if (takesPlace && !places.tryTake(this.#underWay, this.#queue.project_id)) {
      if (this.#underWay === 0) places.onFree(this.#onNews, this.#queue.project_id)
      return false
    }
    const letter = this.#ahead.shift()
    if (letter) void this.#deliver(letter, takesPlace)
    return true
  }

  #readAhead(): void {
    if (this.#isReading || this.#isExhausted || this.#ahead.length > aheadAtMost / 2) return
    this.#isReading = true
    const most = this.#isTrusted ? aheadAtMost : 1
    void this.#deps.letters
      .next({ ...this.#queue, after: this.#cursor, most })
      .then((letters) => {
        const last = letters.at(-1)?.due
        if (last) this.#cursor = { due_at: last.due_at, event_id: last.event_id }
        this.#isExhausted = letters.length < most
        this.#ahead.push(...letters)
      })
      .catch((error: unknown) => this.#trouble(error))
      .finally(() => {
        this.#isReading = false
        this.#onNews()
      })
  }

  /** An end of a request or of reading, or a place that is free. */
  async #news(): Promise<void> {
    if (this.#underWay === 0 && !this.#isReading && !this.#mayBegin()) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#next = resolve
      timer = setTimeout(resolve, newsMs)
    })
    clearTimeout(timer)
    this.#next = undefined
  }

  async #deliver(letter: PendingDelivery, hasPlace: boolean): Promise<void> {
    this.#underWay++
    try {
      if (letter.event) await this.#attempt({ ...letter, event: letter.event })
      else this.#write([needless(letter)])
    } catch (error) {
      this.#trouble(error)
    } finally {
      this.#underWay--
      if (hasPlace) this.#deps.places.leave(this.#queue.project_id)
      this.#onNews()
    }
  }

  async #attempt(letter: Sent): Promise<void> {
    const { letters, targets, agent, userAgent, requestTimeoutMs } = this.#deps
    await letters.withBody(letter, this.#isFailing ? 'unproven' : 'proven', async (body) => {
      const target = await targets.of(this.#queue)
      if (target === 'gone' || target === 'inactive') {
        this.#end ??= target === 'gone' ? 'deleted' : 'inactive'
        return
      }
      // It may have waited for a place in memory, or for the database.
      if (performance.now() - this.#startedAt > beginWithinMs) return
      const startedAt = performance.now()
      const headers = {
        'content-type': 'application/json',
        'user-agent': userAgent,
        ...signedHeaders(target.key, letter.event.id, target.nowSeconds, body),
      }
      const span = follow(readStoredTrace(letter.notes?.trace), 'webhook', {
        kind: SpanKind.CLIENT,
        attributes: {
          'postern.endpoint_id': this.#queue.endpoint_id,
          'postern.event_type': letter.event.type,
          'postern.attempt': letter.due.attempt + 1,
        },
      })
      const answer = await post(agent, target.url, headers, body, requestTimeoutMs)
      if (answer.status !== null) span?.setAttribute('http.response.status_code', answer.status)
      span?.end()
      this.#judge(letter, answer, startedAt)
    })
  }

  #judge({ due, event, readAt }: Sent, answer: ReceiverResponse, startedAt: number): void {
    const { status, latencyMs, response, error } = answer
    metrics.webhookSeconds.note({}, latencyMs)
    const attempt = due.attempt + 1
    const base = {
      ...{ event_id: event.id, event_type: event.type, attempt, status, latencyMs, response, error },
      startedAt,
    }
    if (status !== null && status >= 200 && status < 300) {
      this.#failuresInARow = 0
      const isFirst = !this.#hasTaken
      this.#hasTaken = true
      if (!this.#isTrusted) this.#trust()
      this.#write([{ ...base, outcome: 'delivered', retryMs: null }], isFirst)
      return
    }
    this.#failuresInARow++
    if (status === 410) {
      this.#end = 'gone'
      this.#write([{ ...base, outcome: 'gone', retryMs: null }])
      return
    }
    const asked = status === 429 || status === 503 ? answer.retryAfterMs : undefined
    if (asked !== undefined) {
      this.#end ??= 'asked to'
      this.#restMs = Math.max(this.#restMs, asked)
    }
    // One more try when its time is over, however short before that this one was.
    const leftMs = due.left_ms - (performance.now() - readAt)
    const retryMs = Math.min(Math.max(this.#deps.retryDelayMs(attempt, this.#random), asked ?? 0), leftMs)
    const isLast = leftMs <= 0
    this.#write([{ ...base, outcome: isLast ? 'given_up' : 'failed', retryMs: isLast ? null : retryMs }])
  }

  #trust(): void {
    this.#isTrusted = true
    // It was read one by one so far.
    this.#isExhausted = false
    if (!this.#isFailing) return
    this.#isFailing = false
    this.#deps.places.leaveUnproven()
  }

  #write(results: Result[], hasTaken = false): void {
    for (const { outcome } of results) {
      if (outcome !== 'needless') metrics.webhookAttempts.add({ outcome })
    }
    void this.#report({ queue: this.#queue, results, hasTaken })
  }

  #report(report: DeliveryResult): Promise<void> {
    return this.#deps.reports.write(report, this.#startedAt + leaseSeconds * 1000)
  }

  async #release(): Promise<void> {
    if (this.#end === 'deleted') {
      await this.#drop().catch((error: unknown) => this.#trouble(error))
      return
    }
    const hasFailed = this.#end === 'gone' || this.#failuresInARow >= (this.#hasTaken ? failuresAtMost : 1)
    const failures = this.#hasTaken ? 1 : this.#queue.failures + 1
    const restMs = Math.max(
      this.#restMs,
      hasFailed ? this.#deps.retryDelayMs(failures, this.#random) : 0,
      this.#endRestMs(),
    )
    if (this.#end === 'inactive') await this.#giveUpOld().catch((error: unknown) => this.#trouble(error))
    await this.#report({
      queue: this.#queue,
      results: [],
      hasTaken: this.#hasTaken,
      release: { hasFailed, restMs, disabledBecause: this.#end === 'gone' ? saidGone : undefined },
    })
  }

  #endRestMs(): number {
    if (this.#end === 'inactive') return inactiveRestMs
    if (this.#end === 'gone') return goneRestMs
    return this.#end === 'trouble' ? troubleRestMs : 0
  }

  /** Everything that waits, a part at a time, each only while the lease is still ours. */
  async #drop(): Promise<void> {
    await this.#inParts((tx) => dropDeliveries(tx, this.#queue, deletedAtOnce))
    await this.#deps.db.transaction(async (tx) => {
      if ((await lockLeased(tx, [this.#queue])).size > 0) await deleteQueue(tx, this.#queue)
    })
  }

  #giveUpOld(): Promise<void> {
    return this.#inParts((tx) => giveUpOld(tx, this.#queue, deletedAtOnce))
  }

  async #inParts(part: (tx: Parameters<typeof giveUpOld>[0]) => Promise<number>): Promise<void> {
    let done = deletedAtOnce
    while (done === deletedAtOnce) {
      done = await this.#deps.db.transaction(async (tx) =>
        (await lockLeased(tx, [this.#queue])).size > 0 ? part(tx) : 0,
      )
    }
  }

  #trouble(error: unknown): void {
    // Once, however many requests it hits.
    if (this.#end === 'trouble') return
    this.#end ??= 'trouble'
    const { endpoint_id, project_id } = this.#queue
    this.#deps.log.error(
      { err: error, endpoint_id, project_id },
      'an endpoint could not be served; tried again',
    )
  }
}

/** Whatever is to begin has done so by then, or is left to the next round. */
const beginWithinMs = 30_000
/** Nobody needs to be told that ten seconds are over. */
const newsMs = 1_000

const saidGone = 'It answered 410 Gone, which says that nothing is wanted there any more.'

const needless = ({ due }: PendingDelivery): Result => ({
  ...{ event_id: due.event_id, event_type: '', attempt: due.attempt, outcome: 'needless' },
  ...{ status: null, latencyMs: 0, response: null, error: null, retryMs: null, startedAt: performance.now() },
})
