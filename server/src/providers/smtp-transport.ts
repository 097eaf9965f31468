import { addressText, readInternationalAddress } from '../formats/address.ts'
import { enhancedStatusOf } from '../formats/enhanced-status.ts'
import type { IdentityProvider, IdentityReport, ProviderAccount, Registration } from './sending-identities.ts'
import type { SmtpAddress, SmtpReply, SmtpTimeouts } from './smtp-client.ts'
import { SmtpHost, type SmtpLimits } from './smtp-host.ts'
import type { Handover, Mail, Transport } from './transport.ts'

/** Parses smtp://user:password@host:port or smtps://…, the form of POSTERN_MTA_HOSTS. */
export function smtpAddressOf(url: URL): SmtpAddress {
  const isTls = url.protocol === 'smtps:'
  const [user, pass] = [decodeURIComponent(url.username), decodeURIComponent(url.password)]
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? (isTls ? 465 : 25) : Number(url.port),
    isTls,
    login: user === '' ? null : { user, pass },
  }
}

export interface ServiceOptions {
  hosts: readonly SmtpAddress[]
  /** The host name in EHLO. */
  name: string
  timeouts?: Partial<SmtpTimeouts>
  limits?: Partial<SmtpLimits>
  /** The clock for backoff, in milliseconds. */
  now?: () => number
}

// The worker's lease on each message lasts 60 s.
const defaultTimeouts: SmtpTimeouts = { openMs: 8000, silenceMs: 20_000, mailMs: 40_000, idleMs: 15_000 }
const defaultLimits: SmtpLimits = {
  sessions: 20,
  mailsPerSession: 200,
  firstBackoffMs: 1000,
  // Sending resumes within a minute after a failure is resolved.
  maxBackoffMs: 30_000,
}

/**
 * The operator's MTA fleet, with the wire name `service`. The fleet relays all mail and has no identities, so
 * registration does nothing: DNS records determine whether mail can be sent from a domain, and Postern signs
 * the mail.
 *
 * Each message is sent to the host with the fewest messages in progress. An unreachable host is retried
 * with exponential backoff. Its messages are sent to another host, unless the unreachable host may have
 * accepted them.
 */
export class ServiceProvider implements IdentityProvider, Transport {
  readonly name = 'service'
  readonly location: ProviderAccount = { account: null, region: null }
  readonly #hosts: readonly SmtpHost[]
  readonly #timeouts: SmtpTimeouts
  /** Per host. */
  readonly #sessions: number
  /** First in, first out. */
  readonly #waiting: (() => void)[] = []
  #count = 0
  #isClosed = false

  constructor({ hosts, name, timeouts, limits, now = () => performance.now() }: ServiceOptions) {
    this.#timeouts = { ...defaultTimeouts, ...timeouts }
    const bounds = { ...defaultLimits, ...limits }
    this.#sessions = bounds.sessions
    this.#hosts = hosts.map((address) => new SmtpHost(address, name, this.#timeouts, bounds, now))
  }

  async register(): Promise<Registration> {
    return { dkimTokens: [], dkimZone: null }
  }

  async describe(): Promise<IdentityReport> {
    return { isRegistered: true, isVerified: true, dkimTokens: [], dkimZone: null, detail: null }
  }

  async deregister(): Promise<void> {}

  get isUnavailable(): boolean {
    return this.#isClosed || !this.#hosts.some((host) => host.isUp || host.isDue)
  }

  /** A host whose backoff has ended is probed with one message. */
  get capacity(): number {
    return this.#hosts.reduce((sum, host) => sum + (host.isUp ? this.#sessions : host.isDue ? 1 : 0), 0)
  }

  async send(mail: Mail): Promise<Handover> {
    try {
      return faultOf(mail) ?? (await this.#handOver(mail, performance.now() + this.#timeouts.mailMs))
    } finally {
      this.#waiting.shift()?.()
    }
  }

  async #handOver(mail: Mail, until: number): Promise<Handover> {
    const tried = new Set<SmtpHost>()
    let last: Handover = { kind: 'unreachable', host: null, detail: this.#whyUnavailable(), mayBeSent: false }
    for (;;) {
      // Selection and use happen in the same tick, so there is no race.
      const host = this.#choose(tried)
      if (host === 'full' && (await this.#waitForSlot(until))) continue
      if (host === undefined || host === 'full') return last
      tried.add(host)
      last = handover(host.name, await host.send(mail, until))
      if (last.kind !== 'unreachable' || last.mayBeSent || performance.now() >= until) return last
      this.#waiting.shift()?.()
    }
  }

  /**
   * A host whose backoff has ended is probed with the next message; otherwise the least busy host is chosen.
   */
  #choose(tried: ReadonlySet<SmtpHost>): SmtpHost | 'full' | undefined {
    if (this.#isClosed) return undefined
    const untried = this.#hosts.filter((host) => !tried.has(host))
    const due = untried.find((host) => host.isDue)
    if (due) return due
    const up = untried.filter((host) => host.isUp)
    if (up.length === 0) return undefined
    const least = Math.min(...up.map((host) => host.busy))
    const free = up.filter((host) => host.busy === least && !host.isFull)
    return free[this.#count++ % free.length] ?? 'full'
  }

  /** False if the deadline passed before a slot was free. */
  #waitForSlot(until: number): Promise<boolean> {
    return new Promise((resolve) => {
      const onSlot = () => {
        clearTimeout(timer)
        resolve(true)
      }
      const timer = setTimeout(
        () => {
          this.#waiting.splice(this.#waiting.indexOf(onSlot), 1)
          resolve(false)
        },
        Math.max(0, until - performance.now()),
      )
      this.#waiting.push(onSlot)
    })
  }

  #whyUnavailable(): string {
    if (this.#isClosed) return 'the provider is closed'
    if (this.#hosts.length === 0) return 'no MTA is configured: set POSTERN_MTA_HOSTS'
    return this.isUnavailable
      ? 'no MTA is reachable; the next attempt is not due yet'
      : 'all MTAs have reached their session limit'
  }

  close(): void {
    this.#isClosed = true
    for (const host of this.#hosts) host.close()
    for (const onSlot of this.#waiting.splice(0)) onSlot()
  }
}

function handover(host: string, result: SmtpReply): Handover {
  if (result.kind === 'lost') {
    return { kind: 'unreachable', host, detail: result.detail, mayBeSent: result.mayBeSent }
  }
  if (result.kind === 'sent')
    return { kind: 'sent', host, queueId: queueIdOf(result.reply), reply: result.reply }
  const { code, reply } = result
  return { kind: 'refused', isPermanent: code >= 500, status: enhancedStatusOf(reply), host, reply }
}

// Postfix: "queued as 4XbW…"; Exim: "id=1rXyz-…"; KumoMTA: "ids=8a54…,…"; sendmail: "2.0.0 49F… Message
// accepted".
const queueIds = [
  /\bqueued as <?([\w.-]{1,64})/i,
  /\bids?=([\w.-]{1,64})/i,
  /^250[ -]2\.\d\.\d ([\w.-]{1,64}) Message accepted/i,
]

/** The MTA's queue id, by which its operator finds the message in the logs. */
export function queueIdOf(reply: string): string | null {
  const start = reply.slice(0, 1000)
  return queueIds.map((form) => form.exec(start)?.[1]).find((id) => id !== undefined) ?? null
}

/** Rejects mail that could inject SMTP commands or end the mail data early, before any host is contacted. */
function faultOf({ envelope: { from, to }, dsn, raw }: Mail): Handover | undefined {
  const refused = (status: string, reply: string): Handover => ({
    ...{ kind: 'refused', isPermanent: true, status, host: null, reply },
  })
  const isAddress = (text: string) => {
    const read = readInternationalAddress(text)
    return !('fault' in read) && addressText(read) === text
  }
  if ((from !== '' && !isAddress(from)) || !isAddress(to) || !/^[\x21-\x7e]{1,100}$/.test(dsn.envid)) {
    return refused('5.1.3', 'the envelope is malformed')
  }
  // RFC 5322 §2.2 does not allow NUL. Some MTAs drop it, and `<CRLF><NUL>.<CRLF>` would then end the message
  // prematurely.
  return raw.includes(0) ? refused('5.6.0', 'the message contains a NUL character') : undefined
}
