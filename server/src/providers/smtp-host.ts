import { type SmtpAddress, type SmtpReply, SmtpSession, type SmtpTimeouts } from './smtp-session.ts'
import type { Mail } from './transport.ts'

export interface SmtpLimits {
  /** Sessions at once. */
  sessions: number
  /** Mails in one session: behind a load balancer, others get their turn. */
  mailsPerSession: number
  /** A host that failed is left alone for so long, then twice as long, until the longest. */
  firstRestMs: number
  longestRestMs: number
}

/**
 * One MTA: its sessions, and whether it is to be bothered at all.
 *
 *   up      takes mail in as many sessions as it may have
 *   resting failed; gets no mail until its rest is over
 *   tried   its rest is over: one mail is with it. If the host answers, it is up; if not, it rests for longer
 *
 * What counts is whether it can be reached and says something, not whether it likes a mail.
 */
export class SmtpHost {
  readonly name: string
  readonly #address: SmtpAddress
  readonly #ehlo: string
  readonly #timeouts: SmtpTimeouts
  readonly #limits: SmtpLimits
  readonly #now: () => number
  readonly #idle: { session: SmtpSession; timer: NodeJS.Timeout }[] = []
  #busy = 0
  #failures = 0
  #restsUntil = 0
  #isTried = false
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

  /** It rested long enough, and nobody is trying it yet. */
  get isDue(): boolean {
    return !this.isUp && !this.#isTried && this.#now() >= this.#restsUntil
  }

  async hand(mail: Mail, until: number): Promise<SmtpReply> {
    const isTrial = !this.isUp
    if (isTrial) this.#isTried = true
    this.#busy++
    try {
      const told = await this.#handOver(mail, until)
      if (isTrouble(told)) {
        this.#rest(isTrial)
      } else {
        this.#failures = 0
      }
      return told
    } finally {
      this.#busy--
      if (isTrial) this.#isTried = false
    }
  }

  async #handOver(mail: Mail, until: number): Promise<SmtpReply> {
    const waiting = this.#takeIdle()
    const told = waiting ? await this.#inSession(waiting, mail, until) : undefined
    // The host ended a session that nobody used, as it may: no reason to think ill of it.
    if (told && !(told.kind === 'lost' && told.isStale)) return told
    let session: SmtpSession
    try {
      const openMs = Math.min(this.#timeouts.openMs, remaining(until))
      session = await SmtpSession.open(this.#address, this.#ehlo, { ...this.#timeouts, openMs })
    } catch (error) {
      return { kind: 'lost', detail: (error as Error).message, mayBeSent: false, isStale: false }
    }
    return this.#inSession(session, mail, until)
  }

  async #inSession(session: SmtpSession, mail: Mail, until: number): Promise<SmtpReply> {
    const told = await session.send(mail, remaining(until))
    this.#putBack(session)
    return told
  }

  #takeIdle(): SmtpSession | undefined {
    for (let place = this.#idle.pop(); place; place = this.#idle.pop()) {
      clearTimeout(place.timer)
      if (!place.session.isOver) return place.session
    }
    return undefined
  }

  #putBack(session: SmtpSession): void {
    if (session.isOver) return
    if (this.#isClosed || session.mails >= this.#limits.mailsPerSession) {
      session.close()
      return
    }
    const timer = setTimeout(() => {
      const at = this.#idle.findIndex((place) => place.session === session)
      if (at >= 0) this.#idle.splice(at, 1)
      session.close()
    }, this.#timeouts.idleMs)
    timer.unref()
    this.#idle.push({ session, timer })
  }

  /** Many mails can fail at once by one and the same failure; it counts once. */
  #rest(wasTrial: boolean): void {
    this.#closeIdle()
    if (!this.isUp && !wasTrial) return
    const { firstRestMs, longestRestMs } = this.#limits
    const restMs = Math.min(firstRestMs * 2 ** this.#failures++, longestRestMs)
    // Spread, so that not every process comes back in the same moment.
    this.#restsUntil = this.#now() + restMs * (0.8 + 0.4 * Math.random())
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

/** Out of reach, or out of room (RFC 3463 §3.4: X.3.1 and X.3.2), which is no matter of this one mail. */
function isTrouble(told: SmtpReply): boolean {
  if (told.kind === 'lost') return true
  return told.kind === 'refused' && /^4\d\d[ -]4\.3\.[12]\b/.test(told.reply)
}
