import { setTimeout as sleep } from 'node:timers/promises'
import type { DkimSigner } from '../core/control/domains/dkim-signer.ts'
import { DkimSignerCache } from '../core/control/domains/dkim-signer-cache.ts'
import type { Vault } from '../core/control/secrets/vault.ts'
import { AttemptRecorder } from '../core/mail/dispatch/attempt-recorder.ts'
import { AttemptStarter } from '../core/mail/dispatch/attempt-starter.ts'
import {
  type Claimed,
  ClaimQueue,
  type LaneKey,
  leaseSeconds,
  type QueuedMessage,
  type Sweepable,
} from '../core/mail/dispatch/claims.ts'
import { composeFor } from '../core/mail/dispatch/compose-outgoing.ts'
import { ResultPublisher } from '../core/mail/dispatch/results.ts'
import { awaitedSeconds, decideRetry } from '../core/mail/dispatch/retry-policy.ts'
import { Slots } from '../core/mail/dispatch/slots.ts'
import type { SrsKeys } from '../core/mail/feedback/srs-path.ts'
import type { ComposerThreads } from '../formats/composer-threads.ts'
import type { VerpKeys } from '../formats/verp.ts'
import type { UnscopedDb } from '../platform/db/db.ts'
import { type HintListener, Waiter } from '../platform/db/hints.ts'
import type { Logger } from '../platform/telemetry/log.ts'
import { Counter, DurationHistogram } from '../platform/telemetry/metrics.ts'
import { follow, readStoredTrace, type Span, SpanKind, within } from '../platform/telemetry/tracing.ts'
import type { ProviderName } from '../providers/sending-identities.ts'
import type { Handover, Transport } from '../providers/transport.ts'
import { RecurringSearch } from './recurring-search.ts'

// The loop that sends mail: claims ready mail with an equal share for every lane, submits each message to its
// provider, and records the result. At most `concurrency` messages are in flight. Only as many messages are
// claimed as can be sent immediately, so locking a project stops all its mail except messages in flight.

export interface DispatchDeps {
  /** Has the role that writes mail. */
  db: UnscopedDb
  vault: Vault
  transports: Partial<Record<ProviderName, Transport>>
  composers: ComposerThreads
  returnPathKeys: VerpKeys
  srsKeys: SrsKeys
  /** Enhanced status codes that suppress an address. */
  suppressOn: ReadonlySet<string>
  concurrency: number
  /**
   * Called before each claim. While it returns false, nothing is claimed; mail in flight is still completed.
   */
  mayClaim?: () => boolean
  /** Without hints, the database is polled more often. */
  hints?: HintListener
  /** For tests. */
  idleRefreshMs?: number
  log: Logger
}

const providers = ['service', 'ses', 'none'] as const
const attempts = new Counter(
  'postern_dispatch_attempts_total',
  'Hand-over attempts, by provider and outcome.',
  {
    provider: providers,
    outcome: ['sent', 'deferred', 'refused', 'unreachable', 'unknown'],
  },
)
const handoverSeconds = new DurationHistogram(
  'postern_handover_duration_seconds',
  'Time from the start of a hand-over to the final reply from the provider.',
  { provider: providers },
  [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 120],
)

/** Polling interval of an idle worker without hints; on average, a message waits half of this time. */
const idleMs = { least: 50, most: 250 }
/**
 * Interval at which a worker that receives hints and has no lanes refreshes its lanes. Mail can become ready without a
 * hint, for example in a cell when a project is unlocked: that hint is sent in the control database.
 */
const usualIdleRefreshMs = 5_000
/** Interval at which lanes are refreshed while there is work. */
const refreshEveryMs = 250
const sweepEveryMs = 1_000
const expireEveryMs = 60_000
/**
 * A claim for one free slot costs as much as one for twenty, so the worker waits up to this long for more
 * free slots.
 */
const gatherMs = 10
const failureMs = 1_000

export class Dispatcher {
  readonly #deps: DispatchDeps
  readonly #queue: ClaimQueue
  readonly #signers: DkimSignerCache
  readonly #starter: AttemptStarter
  readonly #recorder: AttemptRecorder
  readonly #publisher: ResultPublisher
  readonly #stopping = new AbortController()
  readonly #inFlight = new Set<Promise<void>>()
  readonly #slots: Slots
  /** At the last claim, a lane with mail had no capacity left. */
  #isAtCapacity = false
  #slotFreed: (() => void) | undefined
  #running: Promise<void> | undefined

  constructor(deps: DispatchDeps) {
    this.#deps = deps
    this.#slots = new Slots(deps.concurrency)
    this.#queue = new ClaimQueue(deps.db)
    this.#signers = new DkimSignerCache(deps.db, deps.vault)
    this.#starter = new AttemptStarter(deps.db)
    this.#publisher = new ResultPublisher(deps.db, {
      suppressOn: deps.suppressOn,
      onError: (error, count) =>
        deps.log.error({ err: error, count }, 'results could not be published; retrying'),
    })
    this.#recorder = new AttemptRecorder(deps.db, {
      onRecorded: (results) => this.#publisher.publish(results),
      onError: (error, lost) => deps.log.error({ err: error, lost }, 'attempts could not be recorded'),
    })
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Stops claiming mail, and resolves when all mail in flight is completed. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#slotFreed?.()
    await this.#running
    await Promise.all(this.#inFlight)
    await this.#publisher.settled()
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    const { hints, idleRefreshMs = usualIdleRefreshMs } = this.#deps
    const waiter = hints?.waiter('mail') ?? new Waiter()
    const refreshes = new RecurringSearch(refreshEveryMs, () => this.#queue.refreshLanes())
    const sweeps = new RecurringSearch(sweepEveryMs, () => this.#queue.findSweepable())
    const expiries = new RecurringSearch(expireEveryMs, () => this.#queue.expire())
    const canWaitForHint = () => waiter.isListening && !this.#queue.hasLanes
    let idle = idleMs.least
    let isWoken = false
    while (!signal.aborted) {
      try {
        const hasReady = sweeps.isDue() && (await this.#sweep(await sweeps.run()))
        if (expiries.isDue()) await expiries.run()
        if (this.#deps.mayClaim?.() === false) {
          idle = idleMs.most
          await sleep(idle, undefined, { signal }).catch(() => {})
          continue
        }
        const isRefreshDue = canWaitForHint()
          ? isWoken || hasReady || refreshes.isDue(idleRefreshMs)
          : !this.#queue.hasLanes || refreshes.isDue()
        if (isRefreshDue) await refreshes.run()
        const claimed = await this.#claim()
        if (claimed > 0) {
          idle = idleMs.least
          await this.#untilFreeSlots()
        } else if (this.#isAtCapacity) {
          idle = idleMs.least
          await this.#untilSlotFreed()
        } else {
          const waited = waiter.wait(canWaitForHint() ? sweepEveryMs : idle, signal)
          // Many hints in a row, for example about held mail, do not cause more than one refresh in this time.
          await sleep(idleMs.least, undefined, { signal }).catch(() => {})
          isWoken = await waited
          idle = Math.min(idleMs.most, idle * 2)
        }
      } catch (error) {
        this.#deps.log.error({ err: error }, 'the queue cannot be read; retrying')
        await sleep(failureMs, undefined, { signal }).catch(() => {})
      }
    }
    waiter.close()
  }

  /** Returns true if messages became ready. */
  async #sweep(found: Sweepable): Promise<boolean> {
    const { hasReady, hasResults } = await this.#queue.sweep(found)
    if (hasResults) await this.#publisher.sweep()
    return hasReady
  }

  /** Waits for a quarter of the slots, or for any free slot after `gatherMs`. */
  async #untilFreeSlots(): Promise<void> {
    const { concurrency } = this.#deps
    const deadline = performance.now() + gatherMs
    const wanted = Math.max(1, Math.floor(concurrency / 4))
    while (!this.#stopping.signal.aborted) {
      const { free } = this.#slots
      if (free >= wanted || (free > 0 && performance.now() >= deadline)) return
      await new Promise<void>((resolve) => {
        this.#slotFreed = resolve
        if (free > 0) setTimeout(resolve, deadline - performance.now())
      })
    }
  }

  async #claim(): Promise<number> {
    const { transports } = this.#deps
    const { free, freeLarge } = this.#slots
    this.#isAtCapacity = false
    if (free <= 0) return 0
    const began = new Date()
    const capacityFor = (lane: LaneKey): number => {
      const transport = lane.provider === 'none' ? undefined : transports[lane.provider]
      if (lane.provider !== 'none' && transport?.isUnavailable !== false) return 0
      const capacity = this.#slots.capacityFor(lane, transport?.capacity ?? Number.POSITIVE_INFINITY)
      if (capacity === 0) this.#isAtCapacity = true
      return capacity
    }
    const claims = await this.#queue.claim({ free, freeLarge, for: capacityFor })
    for (const { claimed, message } of claims) this.#start(claimed, message, spanOf(claimed, message, began))
    return claims.length
  }

  /**
   * Waits until a slot is freed and then another `gatherMs` for more slots, or until the lanes have to be
   * refreshed.
   */
  async #untilSlotFreed(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, refreshEveryMs)
      this.#slotFreed = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    await sleep(gatherMs)
  }

  #start(claimed: Claimed, message: QueuedMessage, span: Span | undefined): void {
    const work = within(span, () => this.#send(claimed, message, span)).finally(() =>
      this.#inFlight.delete(work),
    )
    this.#inFlight.add(work)
  }

  async #send(claimed: Claimed, message: QueuedMessage, span: Span | undefined): Promise<void> {
    this.#slots.take(claimed)
    let handover: Handover
    try {
      handover = await this.#handOver(claimed, message, span)
    } catch (error) {
      const { message_id, recipient_no } = claimed
      this.#deps.log.error(
        { err: error, message_id, recipient_no },
        'a message could not be composed; retrying',
      )
      handover = {
        kind: 'unreachable',
        host: null,
        detail: 'The message could not be composed.',
        mayBeSent: false,
      }
    } finally {
      this.#slots.release(claimed)
      this.#slotFreed?.()
    }
    const decision = decideRetry(handover, claimed)
    attempts.add({ provider: claimed.provider, outcome: decision.outcome })
    span?.setAttribute('postern.outcome', decision.outcome)
    // After this time, another worker has claimed the message, or the message has failed.
    await this.#recorder.record(
      {
        claimed,
        decision,
        status: handover.kind === 'refused' ? handover.status : null,
        isTest: message.is_test,
      },
      1000 * (this.#transportOf(claimed)?.atMostOnce ? awaitedSeconds : leaseSeconds),
    )
  }

  #transportOf({ provider }: Claimed): Transport | undefined {
    return provider === 'none' ? undefined : this.#deps.transports[provider]
  }

  async #handOver(claimed: Claimed, message: QueuedMessage, span: Span | undefined): Promise<Handover> {
    if (message.is_test)
      return { kind: 'sent', host: 'none', queueId: null, reply: 'Not sent: accepted with a test key.' }
    const transport = this.#transportOf(claimed)
    if (!transport)
      return { kind: 'unreachable', host: null, detail: 'This provider is not configured.', mayBeSent: false }
    const signer = await this.#signers.of(claimed.project_id, claimed.identity_id)
    if (!signer) {
      const reply = 'The domain and its DKIM key were deleted after this message was accepted.'
      return { kind: 'refused', isPermanent: true, status: null, host: null, reply }
    }
    const content = message.content ?? (await this.#queue.contentOf(claimed))
    return this.#composeAndSend(transport, claimed, { ...message, content }, signer, span)
  }

  async #composeAndSend(
    transport: Transport,
    claimed: Claimed,
    message: QueuedMessage & { content: Buffer },
    signer: DkimSigner,
    span: Span | undefined,
  ): Promise<Handover> {
    const mail = await within(follow(span, 'compose and sign'), () =>
      composeFor(claimed, message, signer, this.#deps),
    )
    if (transport.atMostOnce) {
      const notSent = (detail: string): Handover => ({
        ...{ kind: 'unreachable', host: null, detail, mayBeSent: false },
      })
      if (transport.isUnavailable) return notSent('The provider is unavailable.')
      const isStarted = await this.#starter.start(claimed, transport.atMostOnce.withinSeconds)
      if (!isStarted) return notSent('The lease expired before the provider could be called.')
    }
    const startedAt = performance.now()
    const handoverSpan = follow(span, 'hand over', { kind: SpanKind.CLIENT })
    const handover = await within(handoverSpan, async () => {
      const handover = await transport.send(mail)
      handoverSpan?.setAttributes(handoverAttributes(handover))
      return handover
    })
    handoverSeconds.observe({ provider: claimed.provider }, performance.now() - startedAt)
    return handover
  }
}

/** Starts at the claim. The time spent in the queue is an attribute of the link to the accepting request. */
function spanOf(claimed: Claimed, { trace }: QueuedMessage, began: Date): Span | undefined {
  const parent = readStoredTrace(trace)
  if (!parent) return undefined
  const { project_id, message_id, recipient_no, attempt, provider, claimed_at, due_at } = claimed
  const waited = { 'postern.queue.wait_ms': claimed_at.getTime() - due_at.getTime() }
  const span = follow(parent, 'dispatch', {
    kind: SpanKind.CONSUMER,
    startTime: began,
    links: [{ context: parent, attributes: waited }],
    attributes: {
      'postern.project_id': project_id,
      'postern.message_id': message_id,
      'postern.recipient_no': recipient_no,
      'postern.attempt': attempt,
      'postern.provider': provider,
    },
  })
  follow(span, 'claim', { startTime: began })?.end()
  return span
}

/** The reply code without the text, which can contain an address. */
function handoverAttributes(handover: Handover): Record<string, string | number> {
  const reply = 'reply' in handover ? /^\d{3}/.exec(handover.reply)?.[0] : undefined
  const queueId = 'queueId' in handover ? handover.queueId : null
  return {
    'postern.handover': handover.kind,
    ...(handover.host !== null && { 'server.address': handover.host }),
    ...(reply !== undefined && { 'smtp.reply_code': Number(reply) }),
    ...(queueId !== null && { 'postern.mta_queue_id': queueId }),
  }
}
