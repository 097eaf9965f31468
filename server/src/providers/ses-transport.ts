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
 * Mail by way of Amazon SES: `SendEmail` of its API of version 2, raw, to one recipient at a time. SES signs it (Easy
 * DKIM), writes Message-ID and Date anew, and tells by events what becomes of it. The credentials need
 * ses:SendEmail and, because it is raw, ses:SendRawEmail.
 *
 * SES has no way to say "this one again": it takes a mail as often as it is given it. So the SDK repeats nothing, and
 * an answer that does not tell whether the mail was taken is `unknown`, not a reason to try again.
 *
 * When SES takes nothing (throttled, paused, no credentials, not reached), it is left alone for a growing while, and
 * then tried with one mail, as an MTA is (smtp-host.ts).
 */
export interface SesTransportOptions extends SesAccess {
  /** Whose events lead to us. */
  configurationSet: string
  /** SES takes nothing for so long, and why. */
  onRest?: (why: string, restMs: number) => void
  limits?: Partial<SesLimits>
  /** The clock by which SES rests, in milliseconds. */
  now?: () => number
}

export interface SesLimits {
  connectMs: number
  /** Everything, from credentials to the last octet of the answer. */
  sendMs: number
  firstRestMs: number
  longestRestMs: number
}

// Whoever sends has a lease of 60 s on the mail. A mail of 40 MB is 53 MB on the wire.
const ordinaryLimits: SesLimits = {
  connectMs: 5000,
  sendMs: 40_000,
  firstRestMs: 1000,
  longestRestMs: 60_000,
}

/** Of a message as it is given to SES, attachments encoded. */
const maxBytes = 40_000_000
// A worker never hands over more than that at once, and none of them is to wait inside of the SDK.
const maxConnections = 1000
// Shorter than SES keeps one open: a request on a connection that it is closing would be in doubt.
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
  #restedAt = Number.NEGATIVE_INFINITY
  #restsUntil = 0
  #isTried = false
  #isClosed = false

  constructor(options: SesTransportOptions) {
    this.#options = options
    this.#limits = { ...ordinaryLimits, ...options.limits }
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

  get isOpen(): boolean {
    const isResting = this.#failures > 0 && (this.#isTried || this.#now() < this.#restsUntil)
    return this.#isClosed || isResting
  }

  async send(mail: Mail): Promise<Handover> {
    const fault = faultOf(mail)
    if (fault) return fault
    if (this.isOpen) return this.#unreachable('SES takes nothing; the next try is not due yet')
    const isTrial = this.#failures > 0
    if (isTrial) this.#isTried = true
    const startedAt = this.#now()
    try {
      const handover = await this.#handOver(mail)
      if (handover.kind === 'sent' || handover.kind === 'refused') {
        // One that began before the rest says nothing about what SES takes now.
        if (startedAt >= this.#restedAt) this.#failures = 0
      } else {
        this.#rest(handover.detail, isTrial)
      }
      return handover
    } finally {
      if (isTrial) this.#isTried = false
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
        reply: `SES has taken it as ${MessageId ?? 'something without a name'}.`,
      }
    }
    try {
      // The SDK heeds the signal in its requests, but not while it looks for credentials.
      return await Promise.race([work(), rejectWhenAborted(abortSignal)])
    } catch (error) {
      return this.#told(error as SesError, isCalled)
    }
  }

  #requestOf({ envelope: { from, to }, raw }: Mail) {
    return {
      Destination: { ToAddresses: [to] },
      Content: { Raw: { Data: raw } },
      ConfigurationSetName: this.#options.configurationSet,
      // The return path names the mail under a signature (formats/verp.ts); events bring it back.
      EmailTags: [{ Name: sesMailTag, Value: from.slice(0, from.indexOf('@')) }],
    }
  }

  #connect(): Promise<SESv2> {
    const { http: httpAgent, https: httpsAgent } = this.#connections
    // A send is never repeated; only this client sends. Its end is the signal's, and the agents'.
    return connectSes(this.#options, { maxAttempts: 1, requestHandler: { httpAgent, httpsAgent } })
  }

  /**
   * Certainly not taken, and the mail's fault: refused. Certainly not taken, and not: unreachable. All else: unknown.
   * The SDK's error is not kept: it holds the request, and the request its authorisation.
   */
  #told(error: SesError, isCalled: boolean): Handover {
    const { name, message, $metadata } = error
    const status = $metadata?.httpStatusCode
    const request = $metadata?.requestId ? `, request ${$metadata.requestId}` : ''
    if (error instanceof ProviderFailure) return this.#unreachable(message)
    if (name === 'CredentialsProviderError' || name === 'TokenProviderError') {
      return this.#unreachable('no AWS credentials were found')
    }
    if (!isCalled) return this.#unreachable('SES could not be called: credentials did not come in time')
    if (name === 'EndpointError') return this.#unreachable(oneLine(message))
    if (status === undefined) {
      const why = typeof error.code === 'string' ? error.code : name
      return this.#connections.neverStood(error)
        ? this.#unreachable(`no connection to SES (${why})`)
        : this.#unknown(`the connection to SES was lost (${why})`)
    }
    if (isThrottling(name) || status === 429)
      return this.#unreachable(`too many requests (${name}${request})`)
    if (status >= 500 || status === 408 || status < 400) {
      return this.#unknown(`SES failed (${name}, status ${status}${request})`)
    }
    if (isAboutCredentials(name)) return this.#unreachable(`our credentials were refused (${name}${request})`)
    const said = `${oneLine(message)} (${name}${request})`
    return mailFaults.has(name)
      ? { kind: 'refused', isLasting: true, status: null, host: this.#host, reply: said }
      : this.#unreachable(said)
  }

  #unreachable(detail: string): Handover & { kind: 'unreachable' } {
    return { kind: 'unreachable', host: this.#host, detail, mayBeSent: false }
  }

  #unknown(detail: string): Handover & { kind: 'unknown' } {
    return { kind: 'unknown', host: this.#host, detail }
  }

  /** Those that were under way together fail together: they are one failure. */
  #rest(why: string, isTrial: boolean): void {
    if (this.#failures > 0 && !isTrial) return
    const { firstRestMs, longestRestMs } = this.#limits
    this.#failures++
    const restMs = Math.min(longestRestMs, firstRestMs * 2 ** Math.min(this.#failures - 1, 16))
    this.#restedAt = this.#now()
    this.#restsUntil = this.#restedAt + restMs
    this.#options.onRest?.(why, restMs)
  }
}

// All others are the operator's to mend (paused, suspended, the quota of the day, no such configuration set, a clock that
// is wrong), or of somebody on the way, and are no reason to give up anybody's mail.
const mailFaults: ReadonlySet<string> = new Set(['MessageRejected', 'BadRequestException'])

/** What SES would refuse anyway, or worse, would not. */
function faultOf({ envelope: { from, to }, raw, needsUtf8 }: Mail): Handover | undefined {
  const refused = (status: string, reply: string): Handover => ({
    ...{ kind: 'refused', isLasting: true, status, host: null, reply },
  })
  if (!/^[\w-]{1,256}@/.test(from)) return refused('5.6.0', 'the return path does not name the mail')
  if (needsUtf8 || /[^\x21-\x7e]/.test(to)) {
    return refused('5.6.7', 'SES takes no addresses outside of ASCII before the @ (RFC 6531)')
  }
  if (raw.length > maxBytes) return refused('5.3.4', `SES takes mails of ${maxBytes / 1e6} MB at most`)
  return undefined
}
