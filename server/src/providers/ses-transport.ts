import type { SESv2 } from '@aws-sdk/client-sesv2'
import { sesMailTag } from '../formats/ses-event.ts'
import { Connections } from './connection-tracking-agent.ts'
import { ProviderFailure } from './sending-identities.ts'
import {
  connectSes,
  isAboutCredentials,
  isThrottling,
  oneLine,
  rejectWhenAborted,
  requireAccount,
  type SesAccess,
  type SesError,
} from './ses-client.ts'
import type { Handover, Mail, Transport } from './transport.ts'

/**
 * Sends raw mail through Amazon SES: `SendEmail` in API version 2, with one recipient per call. SES signs the
 * message (Easy DKIM), replaces Message-ID and Date, and publishes delivery events. The credentials need
 * ses:SendEmail and, for raw mail, ses:SendRawEmail.
 *
 * SES has no idempotency key: if it receives a message twice, it sends the message twice. SDK retries are
 * therefore disabled, and if it is unclear whether the message was accepted, the outcome is `unknown`,
 * which is not retried either.
 *
 * When SES is unavailable (throttled, paused, no credentials, unreachable), a circuit breaker backs off
 * exponentially and then probes with one message, as for an MTA (smtp-host.ts).
 */
export interface SesTransportOptions extends SesAccess {
  /** The configuration set that publishes events to the installation's topic. */
  configurationSet: string
  /** Called when SES is unavailable and will not be used for `backoffMs`. */
  onBackoff?: (why: string, backoffMs: number) => void
  limits?: Partial<SesLimits>
  /** The clock for backoff, in milliseconds. */
  now?: () => number
}

export interface SesLimits {
  connectMs: number
  /** The total time, from resolving credentials to the last octet of the response. */
  sendMs: number
  firstBackoffMs: number
  maxBackoffMs: number
}

// The worker's lease lasts 60 s. A 40 MB message is 53 MB on the wire.
const defaultLimits: SesLimits = {
  connectMs: 5000,
  sendMs: 40_000,
  firstBackoffMs: 1000,
  maxBackoffMs: 60_000,
}

/** SES's size limit for a message with encoded attachments. */
const maxBytes = 40_000_000
// More than a worker sends concurrently, so no message waits inside the SDK.
const maxConnections = 1000
// Shorter than SES's idle timeout: a request on a closing connection would have an unknown outcome.
const idleMs = 3000

export class SesTransport implements Transport {
  readonly atMostOnce: { withinSeconds: number }
  readonly #options: SesTransportOptions
  readonly #limits: SesLimits
  readonly #now: () => number
  readonly #host: string
  readonly #connections: Connections
  #client: Promise<SESv2> | undefined
  #failures = 0
  #backoffStartedAt = Number.NEGATIVE_INFINITY
  #backoffUntil = 0
  #isProbing = false
  #isClosed = false

  constructor(options: SesTransportOptions) {
    this.#options = options
    this.#limits = { ...defaultLimits, ...options.limits }
    this.#now = options.now ?? (() => performance.now())
    const { connectMs, sendMs } = this.#limits
    this.atMostOnce = { withinSeconds: sendMs / 1000 + 1 }
    this.#host =
      options.endpoint === undefined
        ? `email.${options.region}.amazonaws.com`
        : new URL(options.endpoint).host
    this.#connections = new Connections({
      ...{ keepAlive: true, maxSockets: maxConnections, timeout: idleMs },
      connectMs,
    })
  }

  get isUnavailable(): boolean {
    const isBackingOff = this.#failures > 0 && (this.#isProbing || this.#now() < this.#backoffUntil)
    return this.#isClosed || isBackingOff
  }

  async send(mail: Mail): Promise<Handover> {
    const fault = faultOf(mail)
    if (fault) return fault
    if (this.isUnavailable) return this.#unreachable('SES is unavailable; the next attempt is not due yet')
    const isProbe = this.#failures > 0
    if (isProbe) this.#isProbing = true
    const startedAt = this.#now()
    try {
      const handover = await this.#handOver(mail)
      if (handover.kind === 'sent' || handover.kind === 'refused') {
        // A send that began before the backoff does not show the current state of SES.
        if (startedAt >= this.#backoffStartedAt) this.#failures = 0
      } else {
        this.#backOff(handover.detail, isProbe)
      }
      return handover
    } finally {
      if (isProbe) this.#isProbing = false
    }
  }

  close(): void {
    this.#isClosed = true
    this.#client?.then(
      (ses) => ses.destroy(),
      () => {},
    )
  }

  async #handOver(mail: Mail): Promise<Handover> {
    const abortSignal = AbortSignal.timeout(this.#limits.sendMs)
    let isCalled = false
    const work = async (): Promise<Handover> => {
      this.#client ??= this.#connect()
      const ses = await this.#client
      await requireAccount(ses, this.#options)
      if (abortSignal.aborted) throw abortSignal.reason
      isCalled = true
      const { MessageId } = await ses.sendEmail(this.#requestOf(mail), { abortSignal })
      return {
        ...{ kind: 'sent', host: this.#host, queueId: MessageId ?? null },
        reply: `Accepted by SES as ${MessageId ?? 'an unknown message id'}.`,
      }
    }
    try {
      // The SDK observes the signal in its requests, but not while it resolves credentials.
      return await Promise.race([work(), rejectWhenAborted(abortSignal)])
    } catch (error) {
      return this.#handoverOf(error as SesError, isCalled)
    }
  }

  #requestOf({ envelope: { from, to }, raw }: Mail) {
    return {
      Destination: { ToAddresses: [to] },
      Content: { Raw: { Data: raw } },
      ConfigurationSetName: this.#options.configurationSet,
      // The return path contains the message's signed token (formats/verp.ts); events contain the token as a
      // tag.
      EmailTags: [{ Name: sesMailTag, Value: from.slice(0, from.indexOf('@')) }],
    }
  }

  #connect(): Promise<SESv2> {
    const { http: httpAgent, https: httpsAgent } = this.#connections
    // A send is never retried. The signal and the agents enforce its timeouts.
    return connectSes(this.#options, { maxAttempts: 1, requestHandler: { httpAgent, httpsAgent } })
  }

  /**
   * `refused`: definitely not accepted, because of the message. `unreachable`: definitely not accepted, for
   * another reason. `unknown`: all other cases. The SDK error is discarded, because it contains the request
   * with its authorization.
   */
  #handoverOf(error: SesError, isCalled: boolean): Handover {
    const { name, message, $metadata } = error
    const status = $metadata?.httpStatusCode
    const request = $metadata?.requestId ? `, request ${$metadata.requestId}` : ''
    if (error instanceof ProviderFailure) return this.#unreachable(message)
    if (name === 'CredentialsProviderError' || name === 'TokenProviderError') {
      return this.#unreachable('no AWS credentials were found')
    }
    if (!isCalled) return this.#unreachable('SES could not be called: timed out waiting for credentials')
    if (name === 'EndpointError') return this.#unreachable(oneLine(message))
    if (status === undefined) {
      const why = typeof error.code === 'string' ? error.code : name
      return this.#connections.wasNeverConnected(error)
        ? this.#unreachable(`no connection to SES (${why})`)
        : this.#unknown(`the connection to SES was lost (${why})`)
    }
    if (isThrottling(name) || status === 429)
      return this.#unreachable(`too many requests (${name}${request})`)
    if (status >= 500 || status === 408 || status < 400) {
      return this.#unknown(`SES failed (${name}, status ${status}${request})`)
    }
    if (isAboutCredentials(name)) return this.#unreachable(`credentials rejected (${name}${request})`)
    const reply = `${oneLine(message)} (${name}${request})`
    return mailFaults.has(name)
      ? { kind: 'refused', isPermanent: true, status: null, host: this.#host, reply }
      : this.#unreachable(reply)
  }

  #unreachable(detail: string): Handover & { kind: 'unreachable' } {
    return { kind: 'unreachable', host: this.#host, detail, mayBeSent: false }
  }

  #unknown(detail: string): Handover & { kind: 'unknown' } {
    return { kind: 'unknown', host: this.#host, detail }
  }

  /** Concurrent sends that fail together count as one failure. */
  #backOff(why: string, isProbe: boolean): void {
    if (this.#failures > 0 && !isProbe) return
    const { firstBackoffMs, maxBackoffMs } = this.#limits
    this.#failures++
    const backoffMs = Math.min(maxBackoffMs, firstBackoffMs * 2 ** Math.min(this.#failures - 1, 16))
    this.#backoffStartedAt = this.#now()
    this.#backoffUntil = this.#backoffStartedAt + backoffMs
    this.#options.onBackoff?.(why, backoffMs)
  }
}

// All other errors either have to be corrected by the operator (paused, suspended, daily quota, unknown
// configuration set, wrong clock) or occur in transit. They are not a reason to fail the message.
const mailFaults: ReadonlySet<string> = new Set(['MessageRejected', 'BadRequestException'])

/** Rejects mail that SES would reject or would process incorrectly. */
function faultOf({ envelope: { from, to }, raw, needsUtf8 }: Mail): Handover | undefined {
  const refused = (status: string, reply: string): Handover => ({
    ...{ kind: 'refused', isPermanent: true, status, host: null, reply },
  })
  if (!/^[\w-]{1,256}@/.test(from)) return refused('5.6.0', 'the return path does not identify the message')
  if (needsUtf8 || /[^\x21-\x7e]/.test(to)) {
    return refused('5.6.7', 'SES does not support non-ASCII local parts (RFC 6531)')
  }
  if (raw.length > maxBytes)
    return refused('5.3.4', `the message exceeds the SES limit of ${maxBytes / 1e6} MB`)
  return undefined
}
