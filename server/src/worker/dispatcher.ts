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
  type Letter,
  leaseSeconds,
} from '../core/mail/dispatch/claims.ts'
import { composeFor } from '../core/mail/dispatch/compose-outgoing.ts'
import { ResultPublisher } from '../core/mail/dispatch/results.ts'
import { awaitedSeconds, decideRetry } from '../core/mail/dispatch/retry-policy.ts'
import { Slots } from '../core/mail/dispatch/slots.ts'
import type { SrsKeys } from '../core/mail/feedback/srs-path.ts'
import type { ComposerThreads } from '../formats/composer-threads.ts'
import type { VerpKeys } from '../formats/verp.ts'
import type { UnscopedDb } from '../platform/db/db.ts'
import type { Logger } from '../platform/telemetry/log.ts'
import { metrics } from '../platform/telemetry/metrics.ts'
import { follow, readStoredTrace, type Span, SpanKind, within } from '../platform/telemetry/tracing.ts'
import type { ProviderName } from '../providers/sending-identities.ts'
import type { Handover, Transport } from '../providers/transport.ts'

/**
 * Sends mail: claims what is ready, a fair share from every project, hands each to its provider, and writes down what
 * became of it. Never more than `concurrency` at once, and never more claimed than can be sent now, so that a lock
 * stops the queue at once but for what is on its way.
 */
export interface DispatchDeps {
  /** Of the role that writes mail. */
  db: UnscopedDb
  vault: Vault
  carriers: Partial<Record<ProviderName, Transport>>
  composers: ComposerThreads
  returnPathKeys: VerpKeys
  srsKeys: SrsKeys
  /** Enhanced status codes after which an address gets no more mail. */
  suppressOn: ReadonlySet<string>
  concurrency: number
  /** Asked before each claim. While it is false nothing is claimed, and what is in flight ends. */
  mayClaim?: () => boolean
  log: Logger
}

/** With nothing to do, the queue is looked at this often; a mail waits for half of it on average. */
const idleMs = { least: 50, most: 250 }
/** While there is work, new lanes are looked for this often. */
const lookEveryMs = 250
const sweepEveryMs = 1_000
const expireEveryMs = 60_000
/** A claim for a single free place costs as much as one for twenty: some are gathered, for this long at most. */
const gatherMs = 10
const failureMs = 1_000

export class Dispatcher {
  readonly #deps: DispatchDeps
  readonly #queue: ClaimQueue
  readonly #signers: DkimSignerCache
  readonly #beginner: AttemptStarter
  readonly #finisher: AttemptRecorder
  readonly #publisher: ResultPublisher
  readonly #stopping = new AbortController()
  readonly #inFlight = new Set<Promise<void>>()
  readonly #places: Slots
  /** A lane had mail at the last claim, and no room for more of it. */
  #isHeldBack = false
  #placeFreed: (() => void) | undefined
  #running: Promise<void> | undefined

  constructor(deps: DispatchDeps) {
    this.#deps = deps
    this.#places = new Slots(deps.concurrency)
    this.#queue = new ClaimQueue(deps.db)
    this.#signers = new DkimSignerCache(deps.db, deps.vault)
    this.#beginner = new AttemptStarter(deps.db)
    this.#publisher = new ResultPublisher(deps.db, {
      suppressOn: deps.suppressOn,
      onError: (error, count) =>
        deps.log.error({ err: error, count }, 'results could not be published; retrying'),
    })
    this.#finisher = new AttemptRecorder(deps.db, {
      onRecorded: (results) => this.#publisher.publish(results),
      onError: (error, lost) => deps.log.error({ err: error, lost }, 'attempts could not be recorded'),
    })
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Nothing new is claimed; what is under way is finished. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#placeFreed?.()
    await this.#running
    await Promise.all(this.#inFlight)
    await this.#publisher.settled()
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    const looks = new Every(lookEveryMs)
    const sweeps = new Every(sweepEveryMs)
    const expiries = new Every(expireEveryMs)
    let idle = idleMs.least
    while (!signal.aborted) {
      try {
        if (sweeps.isDue()) await this.#sweep()
        if (expiries.isDue()) await this.#queue.expire()
        if (this.#deps.mayClaim?.() === false) {
          idle = idleMs.most
          await sleep(idle, undefined, { signal }).catch(() => {})
          continue
        }
        if (idle > idleMs.least || !this.#queue.hasLanes || looks.isDue()) await this.#queue.look()
        const claimed = await this.#claim()
        if (claimed > 0) {
          idle = idleMs.least
          await this.#untilRoom()
        } else if (this.#isHeldBack) {
          idle = idleMs.least
          await this.#untilFreed()
        } else {
          await sleep(idle, undefined, { signal }).catch(() => {})
          idle = Math.min(idleMs.most, idle * 2)
        }
      } catch (error) {
        this.#deps.log.error({ err: error }, 'the queue cannot be read; tried again')
        await sleep(failureMs, undefined, { signal }).catch(() => {})
      }
    }
  }

  async #sweep(): Promise<void> {
    const { hasResults } = await this.#queue.sweep()
    if (hasResults) await this.#publisher.sweep()
  }

  /** Enough places for a claim to be worth it, or whatever is free after a moment. */
  async #untilRoom(): Promise<void> {
    const { concurrency } = this.#deps
    const deadline = performance.now() + gatherMs
    const wanted = Math.max(1, Math.floor(concurrency / 4))
    while (!this.#stopping.signal.aborted) {
      const { free } = this.#places
      if (free >= wanted || (free > 0 && performance.now() >= deadline)) return
      await new Promise<void>((resolve) => {
        this.#placeFreed = resolve
        if (free > 0) setTimeout(resolve, deadline - performance.now())
      })
    }
  }

  async #claim(): Promise<number> {
    const { carriers } = this.#deps
    const { free, freeLarge } = this.#places
    this.#isHeldBack = false
    if (free <= 0) return 0
    const began = new Date()
    const roomFor = (lane: LaneKey): number => {
      const carrier = lane.provider === 'none' ? undefined : carriers[lane.provider]
      if (lane.provider !== 'none' && carrier?.isOpen !== false) return 0
      const room = this.#places.roomFor(lane, carrier?.places ?? Number.POSITIVE_INFINITY)
      if (room === 0) this.#isHeldBack = true
      return room
    }
    const claims = await this.#queue.claim({ free, freeLarge, for: roomFor })
    for (const { claimed, letter } of claims) this.#begin(claimed, letter, spanOf(claimed, letter, began))
    return claims.length
  }

  /** Somebody is done with a mail, and perhaps a few more; or it is time to look for others. */
  async #untilFreed(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, lookEveryMs)
      this.#placeFreed = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    await sleep(gatherMs)
  }

  #begin(claimed: Claimed, letter: Letter, span: Span | undefined): void {
    const work = within(span, () => this.#send(claimed, letter, span)).finally(() =>
      this.#inFlight.delete(work),
    )
    this.#inFlight.add(work)
  }

  async #send(claimed: Claimed, letter: Letter, span: Span | undefined): Promise<void> {
    this.#places.take(claimed)
    let handover: Handover
    try {
      handover = await this.#handOver(claimed, letter, span)
    } catch (error) {
      const { message_id, recipient_no } = claimed
      this.#deps.log.error(
        { err: error, message_id, recipient_no },
        'a mail could not be made ready; tried again',
      )
      handover = { kind: 'unreachable', host: null, detail: 'It could not be made ready.', mayBeSent: false }
    } finally {
      this.#places.leave(claimed)
      this.#placeFreed?.()
    }
    const judged = decideRetry(handover, claimed)
    metrics.attempts.add({ provider: claimed.provider, outcome: judged.outcome })
    span?.setAttribute('postern.outcome', judged.outcome)
    // What cannot be written down for that long is somebody else's by then, or has been given up.
    await this.#finisher.finish(
      {
        claimed,
        judged,
        status: handover.kind === 'refused' ? handover.status : null,
        isTest: letter.is_test,
      },
      1000 * (this.#carrierOf(claimed)?.atMostOnce ? awaitedSeconds : leaseSeconds),
    )
  }

  #carrierOf({ provider }: Claimed): Transport | undefined {
    return provider === 'none' ? undefined : this.#deps.carriers[provider]
  }

  async #handOver(claimed: Claimed, letter: Letter, span: Span | undefined): Promise<Handover> {
    if (letter.is_test)
      return { kind: 'sent', host: 'none', queueId: null, reply: 'A test key hands nothing over.' }
    const carrier = this.#carrierOf(claimed)
    if (!carrier)
      return { kind: 'unreachable', host: null, detail: 'This provider is not set up.', mayBeSent: false }
    const signer = await this.#signers.of(claimed.project_id, claimed.identity_id)
    if (!signer) {
      const reply = 'The domain it was accepted under is gone, and with it the key to sign it.'
      return { kind: 'refused', isLasting: true, status: null, host: null, reply }
    }
    const content = letter.content ?? (await this.#queue.contentOf(claimed))
    return this.#carry(carrier, claimed, { ...letter, content }, signer, span)
  }

  async #carry(
    carrier: Transport,
    claimed: Claimed,
    letter: Letter & { content: Buffer },
    signer: DkimSigner,
    span: Span | undefined,
  ): Promise<Handover> {
    const mail = await within(follow(span, 'compose and sign'), () =>
      composeFor(claimed, letter, signer, this.#deps),
    )
    if (carrier.atMostOnce) {
      const notSent = (detail: string): Handover => ({
        ...{ kind: 'unreachable', host: null, detail, mayBeSent: false },
      })
      // It would be written down for nothing.
      if (carrier.isOpen) return notSent('The provider takes nothing at this moment.')
      const isBegun = await this.#beginner.begin(claimed, carrier.atMostOnce.withinSeconds)
      if (!isBegun) return notSent('The lease was too short for a call.')
    }
    const startedAt = performance.now()
    const speaking = follow(span, 'hand over', { kind: SpanKind.CLIENT })
    const handover = await within(speaking, async () => {
      const handover = await carrier.send(mail)
      speaking?.setAttributes(spokenOf(handover))
      return handover
    })
    metrics.handoverSeconds.note({ provider: claimed.provider }, performance.now() - startedAt)
    return handover
  }
}

/** From the beginning of the claim on. How long it waited is told by the link to where it came from. */
function spanOf(claimed: Claimed, { trace }: Letter, began: Date): Span | undefined {
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

/** The code of the reply, and not its words: these may name an address. */
function spokenOf(handover: Handover): Record<string, string | number> {
  const reply = 'reply' in handover ? /^\d{3}/.exec(handover.reply)?.[0] : undefined
  const queueId = 'queueId' in handover ? handover.queueId : null
  return {
    'postern.handover': handover.kind,
    ...(handover.host !== null && { 'server.address': handover.host }),
    ...(reply !== undefined && { 'smtp.reply_code': Number(reply) }),
    ...(queueId !== null && { 'postern.mta_queue_id': queueId }),
  }
}

/** Whether so much time has gone by since it last was due; at first it is. */
class Every {
  readonly #ms: number
  #last = Number.NEGATIVE_INFINITY

  constructor(ms: number) {
    this.#ms = ms
  }

  isDue(): boolean {
    if (performance.now() - this.#last < this.#ms) return false
    this.#last = performance.now()
    return true
  }
}
