import type { SMTPServerAddress, SMTPServerDataStream, SMTPServerSession } from 'smtp-server'
import {
  NotForwarded,
  NotReceivable,
  type ReceiveDeps,
  type ReceiveResult,
  RoutesMoved,
  receiveMail,
} from '../../core/mail/inbound/receive.ts'
import { type Routing, type RoutingOutcome, routingsOf } from '../../core/mail/inbound/routing.ts'
import { type Address, addressText, readInternationalAddress } from '../../formats/address.ts'
import type { TraceFault } from '../../formats/trace.ts'
import { PosternError } from '../../platform/errors.ts'
import {
  createFailureLimit,
  createRateLimit,
  networkOf,
  type RateLimit,
} from '../../platform/http/rate-limit.ts'
import type { Logger } from '../../platform/telemetry/log.ts'
import { metrics } from '../../platform/telemetry/metrics.ts'
import { ConnectionLimit } from '../smtp/connection-limit.ts'
import { Budget, withBufferedMail } from '../smtp/mail-buffer.ts'
import { type RelayNetworks, whoseOf } from '../smtp/relay-networks.ts'
import { Refusal } from '../smtp/replies.ts'

export interface InboundSessionDeps extends ReceiveDeps {
  log: Logger
  relays: RelayNetworks
  limits?: Partial<typeof limits>
}

const limits = {
  // Postfix opens 20 to one place (default_destination_concurrency_limit), and there may be a few behind one address.
  clientsPerNetwork: 50,
  mailsPerMinute: 600,
  // Of mails whose envelope sender SPF has confirmed: whoever only claims to be of a domain takes nothing from it.
  mailsPerMinuteOfSender: 1200,
  // Far above what a mistake makes; whoever guesses addresses is stopped.
  unknownPerMinute: 100,
  mailsPerSession: 1000,
  // Of mails that come in or wait for their commit. For a moment each is in memory about four times. A network has a
  // quarter of it, which is more than the largest mail.
  heldBytes: 128 * 1024 * 1024,
}

const notNow = (): Refusal => new Refusal(451, '4.3.0 Not now; come again')
const tooCostly = (): Refusal => new Refusal(451, '4.7.1 Processing time limit reached, try again later')
const tooMuch = (): Refusal => new Refusal(452, '4.3.1 Too much mail at once; come again')

/**
 * What is said to RCPT; null: taken. A stranger learns whether an address takes mail, and not whose it is or why not.
 */
const answers: Record<RoutingOutcome, [code: number, text: string] | null> = {
  endpoint: null,
  forward: null,
  drop: null,
  reject: [550, '5.7.1 This address takes no mail'],
  no_route: [550, '5.1.1 There is no such address here'],
  no_domain: [550, '5.1.1 There is no such address here'],
  held_elsewhere: [550, '5.1.1 There is no such address here'],
  contested: [450, '4.3.0 This address takes no mail yet; come again'],
  project_locked: [450, '4.3.0 This address takes no mail now; come again'],
  endpoint_inactive: [450, '4.3.0 This address takes no mail now; come again'],
  domain_not_verified: [450, '4.3.0 This address takes no mail yet; come again'],
  provider_forwards_nothing: [450, '4.3.0 This address takes no mail now; come again'],
  forward_not_confirmed: [450, '4.3.0 Recipient address not active yet, try again later'],
}

const faults: Record<TraceFault, [code: number, text: string]> = {
  loop: [554, '5.4.6 The mail goes in a circle'],
  nul: [554, '5.6.0 The mail has a NUL in it'],
  header: [552, '5.3.4 The header is too large'],
}

/** What is said to each command of whoever brings mail, and what is done. */
export class InboundSession {
  readonly crowd: ConnectionLimit
  readonly #deps: InboundSessionDeps
  readonly #limits: typeof limits
  readonly #budget: Budget
  readonly #mails: RateLimit
  readonly #unknown: RateLimit
  readonly #senders
  /** Whose mail the transaction is: the first recipient's. */
  readonly #projects = new WeakMap<SMTPServerSession, number>()

  constructor(deps: InboundSessionDeps) {
    this.#deps = deps
    this.#limits = { ...limits, ...deps.limits }
    this.crowd = new ConnectionLimit(this.#limits.clientsPerNetwork)
    this.#budget = new Budget(this.#limits.heldBytes)
    this.#mails = createRateLimit(this.#limits.mailsPerMinute, 'this network')
    this.#unknown = createRateLimit(this.#limits.unknownPerMinute, 'this network')
    this.#senders = createFailureLimit(this.#limits.mailsPerMinuteOfSender)
  }

  /** MAIL. */
  async begin({ address, args }: SMTPServerAddress, session: SMTPServerSession): Promise<void> {
    const network = networkOf(session.remoteAddress)
    if (session.transaction > this.#limits.mailsPerSession) {
      throw new Refusal(421, '4.7.0 That is enough for one connection; open another')
    }
    if (this.#deps.examiners.isSpent(whoseOf(this.#deps.relays, session.remoteAddress))) throw tooCostly()
    if (!this.#budget.makeRoom(args ? Number(args['SIZE'] ?? 0) : 0, network)) throw tooMuch()
    const isOver = await this.#mails(network).then(
      () => false,
      () => true,
    )
    // Reports have no sender, and are all of them somebody else's.
    if (isOver || (address !== '' && (await this.#senders.isReached(domainOf(address))))) {
      throw new Refusal(451, '4.7.1 Too much mail in a short time; come again')
    }
  }

  /** RCPT. */
  async expect({ address }: SMTPServerAddress, session: SMTPServerSession): Promise<void> {
    const read = readInternationalAddress(address)
    if ('fault' in read) throw new Refusal(553, `5.1.3 The address ${read.fault}`)
    const routing = await this.#routingOf(read)
    const answer = answers[routing.outcome]
    if (answer?.[0] === 550) await this.#countUnknown(session)
    if (answer) {
      metrics.inbound.add({ outcome: 'refused' })
      if (routing.outcome === 'forward_not_confirmed') metrics.forwards.add({ outcome: 'unconfirmed' })
      throw new Refusal(...answer)
    }
    const addressee = addresseeOf(routing.domain?.projectId ?? 0)
    if (this.#deps.examiners.isSpent(whoseOf(this.#deps.relays, session.remoteAddress, addressee))) {
      throw tooCostly()
    }
    this.#keepToOneProject(session, routing)
  }

  async #routingOf(address: Address): Promise<Routing> {
    try {
      const [routing] = await this.#deps.routes.readOne((tx) => routingsOf(tx, [address]))
      if (routing) return routing
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'an address could not be looked up')
    }
    throw notNow()
  }

  async #countUnknown({ remoteAddress }: SMTPServerSession): Promise<void> {
    try {
      await this.#unknown(networkOf(remoteAddress))
    } catch {
      throw new Refusal(421, '4.7.0 Too many addresses that do not exist')
    }
  }

  /**
   * What becomes of a mail is told to whoever brings it by one reply for all recipients, and one project's full quota is
   * no reason to refuse it to another: they come one after the other (RFC 5321 §4.5.3.1.10).
   */
  #keepToOneProject(session: SMTPServerSession, { domain }: Routing): void {
    const projectId = domain?.projectId ?? 0
    const isFirst = session.envelope.rcptTo.length === 0
    if (!isFirst && this.#projects.get(session) !== projectId) {
      throw new Refusal(452, '4.5.3 Bring it to this address by itself')
    }
    this.#projects.set(session, projectId)
  }

  /** DATA, to its end. What it is called, once it is committed; undefined for one that is too large. */
  async take(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<string | undefined> {
    const holders = [networkOf(session.remoteAddress), addresseeOf(this.#projects.get(session) ?? 0)]
    return withBufferedMail(stream, { budget: this.#budget, holders, isShared: true }, async (raw) => {
      const { id } = await this.#takeIn(raw, session)
      return id
    })
  }

  async #takeIn(raw: Buffer, session: SMTPServerSession): Promise<ReceiveResult> {
    const { envelope, remoteAddress, hostNameAppearsAs, secure } = session
    const to = recipientsOf(session)
    const from = envelope.mailFrom ? envelope.mailFrom.address : ''
    try {
      const taken = await receiveMail(this.#deps, {
        ...{ raw, from, to, isUtf8: envelope.smtpUtf8 === true },
        client: { ip: remoteAddress, helo: hostNameAppearsAs || 'unknown', isTls: secure },
        whose: whoseOf(this.#deps.relays, remoteAddress, addresseeOf(this.#projects.get(session) ?? 0)),
      })
      const { id, projectId, actions, authentication } = taken
      for (const outcome of actions) metrics.inbound.add({ outcome })
      this.#deps.log.info({ project_id: projectId, inbound_id: id, actions }, 'mail came in')
      if (from !== '' && authentication.spf.result === 'pass') await this.#senders.count(domainOf(from))
      return taken
    } catch (error) {
      throw this.#refusalOf(error)
    }
  }

  /** Why a project sends nothing on is not a stranger's to know: all of it may be mended, so the mail may come again. */
  #refusalOf(error: unknown): Refusal {
    const { log } = this.#deps
    if (error instanceof NotReceivable) return new Refusal(...faults[error.fault])
    metrics.inbound.add({ outcome: 'failed' })
    if (error instanceof RoutesMoved) return notNow()
    // RFC 7372 §3.2.
    if (error instanceof NotForwarded) {
      return error.isLasting
        ? new Refusal(550, '5.7.26 Message fails DMARC for the domain in From')
        : new Refusal(451, '4.7.0 Sender authentication temporarily unavailable, try again later')
    }
    if (!(error instanceof PosternError)) {
      log.error({ err: error }, 'mail that came in could not be taken')
      return notNow()
    }
    if (error.code === 'rate_limited') return tooCostly()
    if (error.code === 'quota_exceeded')
      return new Refusal(452, '4.2.2 This address takes no more mail for now')
    log.warn({ err: error }, 'mail that came in was not taken; it may come again')
    return error.code === 'unavailable'
      ? notNow()
      : new Refusal(450, '4.3.0 This address takes no mail now; come again')
  }
}

const addresseeOf = (projectId: number): string => `project ${projectId}`

const domainOf = (sender: string): string => sender.slice(sender.lastIndexOf('@') + 1).toLowerCase()

/** Each once. They were read at RCPT. */
function recipientsOf({ envelope }: SMTPServerSession): Address[] {
  const byKey = new Map<string, Address>()
  for (const { address } of envelope.rcptTo) {
    const read = readInternationalAddress(address)
    if ('fault' in read) throw new Error('a recipient that was not looked at')
    const key = addressText(read).toLowerCase()
    if (!byKey.has(key)) byKey.set(key, read)
  }
  return [...byKey.values()]
}
