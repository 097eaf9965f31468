import { type SmtpAddress, SmtpClient, type SmtpReply, type SmtpTimeouts } from './smtp-client.ts'
import type { Mail } from './transport.ts'

export interface SmtpLimits {
  /** Concurrent sessions. */
  sessions: number
  /** Messages per session: reconnecting spreads the load behind a load balancer. */
  mailsPerSession: number
  /** The backoff after the first failure; it doubles with each subsequent failure, up to the maximum. */
  firstBackoffMs: number
  maxBackoffMs: number
}

/**
 * One MTA: its sessions and a circuit breaker.
 *
 *   up       (closed)    accepts mail in up to `sessions` sessions
 *   backoff  (open)      failed; gets no mail until the backoff has ended
 *   probing  (half-open) the backoff has ended and one message is in transfer. If the host replies, it is up;
 *                        otherwise the backoff doubles
 *
 * The state depends on whether the host is reachable and replies, not on whether it accepts a message.
 */
export class SmtpHost {
  readonly name: string
  readonly #address: SmtpAddress
  readonly #ehlo: string
  readonly #timeouts: SmtpTimeouts
  readonly #limits: SmtpLimits
  readonly #now: () => number
  readonly #idle: { session: SmtpClient; timer: NodeJS.Timeout }[] = []
  #busy = 0
  #failures = 0
  #backoffUntil = 0
  #isProbing = false
  #isClosed = false

  constructor(
    address: SmtpAddress,
    ehlo: string,
    timeouts: SmtpTimeouts,
    limits: SmtpLimits,
    now: () => number,
  ) {
    this.name = `${address.host}:${address.port}`
    this.#address = address
    this.#ehlo = ehlo
    this.#timeouts = timeouts
    this.#limits = limits
    this.#now = now
  }

  get isUp(): boolean {
    return this.#failures === 0
  }

  get busy(): number {
    return this.#busy
  }

  get isFull(): boolean {
    return this.#busy >= this.#limits.sessions
  }

  /** The backoff has ended and no probe is running. */
  get isDue(): boolean {
    return !this.isUp && !this.#isProbing && this.#now() >= this.#backoffUntil
  }

  async send(mail: Mail, until: number): Promise<SmtpReply> {
    const isProbe = !this.isUp
    if (isProbe) this.#isProbing = true
    this.#busy++
    try {
      const result = await this.#handOver(mail, until)
      if (isHostFailure(result)) {
        this.#backOff(isProbe)
      } else {
        this.#failures = 0
      }
      return result
    } finally {
      this.#busy--
      if (isProbe) this.#isProbing = false
    }
  }

  async #handOver(mail: Mail, until: number): Promise<SmtpReply> {
    const idle = this.#takeIdle()
    const result = idle ? await this.#sendIn(idle, mail, until) : undefined
    // The host can close an idle session at any time, which is not a failure.
    if (result && !(result.kind === 'lost' && result.isStale)) return result
    let session: SmtpClient
    try {
      const openMs = Math.min(this.#timeouts.openMs, remaining(until))
      session = await SmtpClient.open(this.#address, this.#ehlo, { ...this.#timeouts, openMs })
    } catch (error) {
      return { kind: 'lost', detail: (error as Error).message, mayBeSent: false, isStale: false }
    }
    return this.#sendIn(session, mail, until)
  }

  async #sendIn(session: SmtpClient, mail: Mail, until: number): Promise<SmtpReply> {
    const result = await session.send(mail, remaining(until))
    this.#putBack(session)
    return result
  }

  #takeIdle(): SmtpClient | undefined {
    for (let idle = this.#idle.pop(); idle; idle = this.#idle.pop()) {
      clearTimeout(idle.timer)
      if (!idle.session.isOver) return idle.session
    }
    return undefined
  }

  #putBack(session: SmtpClient): void {
    if (session.isOver) return
    if (this.#isClosed || session.mails >= this.#limits.mailsPerSession) {
      session.close()
      return
    }
    const timer = setTimeout(() => {
      const at = this.#idle.findIndex((idle) => idle.session === session)
      if (at >= 0) this.#idle.splice(at, 1)
      session.close()
    }, this.#timeouts.idleMs)
    timer.unref()
    this.#idle.push({ session, timer })
  }

  /** One failure can affect many messages at the same time, but counts only once. */
  #backOff(wasProbe: boolean): void {
    this.#closeIdle()
    if (!this.isUp && !wasProbe) return
    const { firstBackoffMs, maxBackoffMs } = this.#limits
    const backoffMs = Math.min(firstBackoffMs * 2 ** this.#failures++, maxBackoffMs)
    // Jitter prevents processes from retrying at the same time.
    this.#backoffUntil = this.#now() + backoffMs * (0.8 + 0.4 * Math.random())
  }

  #closeIdle(): void {
    for (const { session, timer } of this.#idle.splice(0)) {
      clearTimeout(timer)
      session.close()
    }
  }

  close(): void {
    this.#isClosed = true
    this.#closeIdle()
  }
}

const remaining = (until: number): number => Math.max(1, Math.round(until - performance.now()))

/** Unreachable, or out of resources (RFC 3463 §3.4: X.3.1 and X.3.2), independent of the message. */
function isHostFailure(result: SmtpReply): boolean {
  if (result.kind === 'lost') return true
  return result.kind === 'refused' && /^4\d\d[ -]4\.3\.[12]\b/.test(result.reply)
}
