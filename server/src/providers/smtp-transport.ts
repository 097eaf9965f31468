import { addressText, readInternationalAddress } from '../formats/address.ts'
import { enhancedStatusOf } from '../formats/enhanced-status.ts'
import type { IdentityProvider, IdentityReport, ProviderAccount, Registration } from './sending-identities.ts'
import { SmtpHost, type SmtpLimits } from './smtp-host.ts'
import type { SmtpAddress, SmtpReply, SmtpTimeouts } from './smtp-session.ts'
import type { Handover, Mail, Transport } from './transport.ts'

/** Of smtp://user:password@host:port or smtps://…, as POSTERN_MTA_HOSTS has them. */
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
  /** What we call ourselves to them. */
  name: string
  timeouts?: Partial<SmtpTimeouts>
  limits?: Partial<SmtpLimits>
  /** The clock by which hosts rest, in milliseconds. */
  now?: () => number
}

// Whoever sends has a lease of 60 s on the mail.
const ordinaryTimeouts: SmtpTimeouts = { openMs: 8000, silenceMs: 20_000, mailMs: 40_000, idleMs: 15_000 }
const ordinaryLimits: SmtpLimits = {
  sessions: 20,
  mailsPerSession: 200,
  firstRestMs: 1000,
  // Whatever the matter was: within a minute of its end mail goes out again.
  longestRestMs: 30_000,
}

/**
 * The operator's own MTA fleet. It sends whatever it is handed and knows no identities, so for domains there is nothing
 * to call: whether mail may leave under a name is decided by the name's DNS records alone, and we sign it ourselves.
 *
 * Mail goes to the host that has least of it. One that cannot be reached is left alone for a growing while; its mail
 * goes to another, unless it may have been taken.
 */
export class ServiceProvider implements IdentityProvider, Transport {
  readonly name = 'service'
  readonly place: ProviderAccount = { account: null, region: null }
  readonly #hosts: readonly SmtpHost[]
  readonly #timeouts: SmtpTimeouts
  /** Of each host. */
  readonly #sessions: number
  /** In the order in which they came. */
  readonly #waiting: (() => void)[] = []
  #count = 0
  #isClosed = false

  constructor({ hosts, name, timeouts, limits, now = () => performance.now() }: ServiceOptions) {
    this.#timeouts = { ...ordinaryTimeouts, ...timeouts }
    const bounds = { ...ordinaryLimits, ...limits }
    this.#sessions = bounds.sessions
    this.#hosts = hosts.map((address) => new SmtpHost(address, name, this.#timeouts, bounds, now))
  }

  async register(): Promise<Registration> {
    return { dkimTokens: [], dkimZone: null }
  }

  async look(): Promise<IdentityReport> {
    return { isRegistered: true, isVerified: true, dkimTokens: [], dkimZone: null, detail: null }
  }

  async deregister(): Promise<void> {}

  get isOpen(): boolean {
    return this.#isClosed || !this.#hosts.some((host) => host.isUp || host.isDue)
  }

  /** A host whose rest is over is tried with one mail. */
  get places(): number {
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
    let last: Handover = { kind: 'unreachable', host: null, detail: this.#whyNobody(), mayBeSent: false }
    for (;;) {
      // Chosen and taken in one go: nobody else can come between.
      const host = this.#choose(tried)
      if (host === 'full' && (await this.#turn(until))) continue
      if (host === undefined || host === 'full') return last
      tried.add(host)
      last = handover(host.name, await host.hand(mail, until))
      if (last.kind !== 'unreachable' || last.mayBeSent || performance.now() >= until) return last
      this.#waiting.shift()?.()
    }
  }

  /** One whose rest is over is tried with whatever mail comes first; otherwise the one that has least to do. */
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

  /** False when the time was over before there was room. */
  #turn(until: number): Promise<boolean> {
    return new Promise((resolve) => {
      const come = () => {
        clearTimeout(timer)
        resolve(true)
      }
      const timer = setTimeout(
        () => {
          this.#waiting.splice(this.#waiting.indexOf(come), 1)
          resolve(false)
        },
        Math.max(0, until - performance.now()),
      )
      this.#waiting.push(come)
    })
  }

  #whyNobody(): string {
    if (this.#isClosed) return 'the provider is closed'
    if (this.#hosts.length === 0) return 'no MTA is configured: set POSTERN_MTA_HOSTS'
    return this.isOpen
      ? 'no MTA can be reached; the next try is not due yet'
      : 'every MTA has as much as it may have'
  }

  close(): void {
    this.#isClosed = true
    for (const host of this.#hosts) host.close()
    for (const come of this.#waiting.splice(0)) come()
  }
}

function handover(host: string, told: SmtpReply): Handover {
  if (told.kind === 'lost') {
    return { kind: 'unreachable', host, detail: told.detail, mayBeSent: told.mayBeSent }
  }
  if (told.kind === 'sent') return { kind: 'sent', host, queueId: queueIdOf(told.reply), reply: told.reply }
  const { code, reply } = told
  return { kind: 'refused', isLasting: code >= 500, status: enhancedStatusOf(reply), host, reply }
}

// Postfix: "queued as 4XbW…"; Exim: "id=1rXyz-…"; KumoMTA: "ids=8a54…,…"; sendmail: "2.0.0 49F… Message accepted".
const queueIds = [
  /\bqueued as <?([\w.-]{1,64})/i,
  /\bids?=([\w.-]{1,64})/i,
  /^250[ -]2\.\d\.\d ([\w.-]{1,64}) Message accepted/i,
]

/** What the MTA calls the mail, which is what its operator looks for. */
export function queueIdOf(reply: string): string | null {
  const start = reply.slice(0, 1000)
  return queueIds.map((form) => form.exec(start)?.[1]).find((id) => id !== undefined) ?? null
}

/** What would be more than an address in a command, or may end the mail before its end, never leaves this machine. */
function faultOf({ envelope: { from, to }, dsn, raw }: Mail): Handover | undefined {
  const refused = (status: string, reply: string): Handover => ({
    ...{ kind: 'refused', isLasting: true, status, host: null, reply },
  })
  const isAddress = (text: string) => {
    const read = readInternationalAddress(text)
    return !('fault' in read) && addressText(read) === text
  }
  if ((from !== '' && !isAddress(from)) || !isAddress(to) || !/^[\x21-\x7e]{1,100}$/.test(dsn.envid)) {
    return refused('5.1.3', 'the envelope is not well formed')
  }
  // RFC 5322 §2.2 knows no NUL, and there are MTAs that drop it: then `<CRLF><NUL>.<CRLF>` would end the mail.
  return raw.includes(0) ? refused('5.6.0', 'the mail has a NUL in it') : undefined
}
