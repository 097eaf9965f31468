import { domainToASCII } from 'node:url'
import type { SMTPServerDataStream, SMTPServerSession } from 'smtp-server'
import type { ByteLimits } from '../core/caps/caps.ts'
import { isForwardedPath, type SrsKeys } from '../core/feedback/forwarded-path.ts'
import { type FeedbackDeps, takeReport } from '../core/feedback/report.ts'
import { mailOf } from '../core/feedback/return-path.ts'
import { PosternError } from '../platform/errors.ts'
import { createRateLimit, networkOf } from '../platform/http/rate-limit.ts'
import type { Certificate } from './certificate.ts'
import { Crowd } from './crowd.ts'
import { Budget, withMail } from './held-mail.ts'
import { type Listener, listen } from './listener.ts'
import { Refusal } from './replies.ts'
import { StrictSmtpServer } from './strict-smtp.ts'

/**
 * The MX of the return-path host: bounces and delivery reports at the return paths of mail, complaints at `fbl` and
 * `abuse`. It relays nothing, delivers nothing and answers to nobody: what it takes in becomes rows, or nothing.
 *
 * 250 is said when the transaction has committed, so that whatever goes wrong before, whoever brought the report still
 * has it, and comes again.
 */
export interface BounceDeps extends FeedbackDeps {
  byteLimits: ByteLimits
  /** Of the return paths of mail that was sent on. */
  srsKeys: SrsKeys
  returnPathHost: string
  host: string
  port: number
  /** STARTTLS is offered with it. */
  tls: Certificate | undefined
}

const maxBytes = 1024 * 1024
const maxClients = 500
// Postfix opens 20 to one place (default_destination_concurrency_limit), and there may be a few behind one address.
const maxClientsPerNetwork = 50
const idleMs = 60_000
const lifetimeMs = 10 * 60_000
// All of them in the middle of a report of an ordinary size. A network has a quarter of it.
const maxHeldBytes = 64 * maxBytes
// Far above what a mistake makes; whoever guesses return paths is stopped.
const refusalsPerMinute = 100

export async function startBounces(deps: BounceDeps): Promise<Listener> {
  const door = new Door(deps)
  const server = new StrictSmtpServer({
    listener: 'bounces',
    name: deps.returnPathHost,
    disabledCommands: deps.tls ? ['AUTH'] : ['AUTH', 'STARTTLS'],
    ...deps.tls,
    size: maxBytes,
    rejectOversized: true,
    // A report is about one mail. Whoever has two of them brings them one by one.
    maxRecipients: 1,
    maxClients,
    socketTimeout: idleMs,
    crowd: new Crowd(maxClientsPerNetwork),
    lifetimeMs,
    // Those who guess are counted by network.
    maxErrors: Number.POSITIVE_INFINITY,
    disableReverseLookup: true,
    onRcptTo: ({ address }, { remoteAddress }, callback) =>
      void door.expects(address, remoteAddress).then(callback),
    onData: (stream, session, callback) =>
      void door.take(stream, session).then(
        () => callback(null, '2.0.0 Noted'),
        (error) => callback(error),
      ),
  })
  return listen(server, deps)
}

class Door {
  readonly #deps: BounceDeps
  readonly #budget = new Budget(maxHeldBytes)
  readonly #refused = createRateLimit(refusalsPerMinute, 'this address')

  constructor(deps: BounceDeps) {
    this.#deps = deps
  }

  /** Null for an address that something may be said to. */
  async expects(address: string, remoteAddress: string): Promise<Refusal | null> {
    const { keys, srsKeys } = this.#deps
    const isReturnPath = mailOf(keys, address) !== undefined || isForwardedPath(srsKeys, address)
    if (isReturnPath || this.#isForComplaints(address)) return null
    try {
      await this.#refused(networkOf(remoteAddress))
    } catch {
      return new Refusal(421, '4.7.0 Too many addresses that do not exist')
    }
    return new Refusal(550, '5.1.1 There is no such address here')
  }

  #isForComplaints(address: string): boolean {
    const [, local = '', domain = ''] = /^(fbl|abuse)@(.+)$/i.exec(address) ?? []
    return local !== '' && domainToASCII(domain) === this.#deps.returnPathHost
  }

  async take(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> {
    const address = session.envelope.rcptTo[0]?.address ?? ''
    const whose = networkOf(session.remoteAddress)
    await withMail(stream, { budget: this.#budget, whose }, (raw) => this.#apply(raw, address))
  }

  async #apply(raw: Buffer, address: string): Promise<void> {
    const { log, keys, returnPathHost: name } = this.#deps
    try {
      await takeReport({ ...this.#deps, name }, raw, mailOf(keys, address))
    } catch (error) {
      const isAway = error instanceof PosternError && error.code === 'unavailable'
      if (isAway) log.warn({ err: error }, 'a report could not be written down; it will come again')
      else log.error({ err: error }, 'a report could not be applied; it will come again')
      throw new Refusal(451, '4.3.0 Not now; come again')
    }
  }
}
