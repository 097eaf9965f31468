import type { SMTPServerAddress, SMTPServerDataStream, SMTPServerSession } from 'smtp-server'
import { forwards, inboundMails } from '../../core/mail/inbound/metrics.ts'
import {
  NotForwarded,
  NotReceivable,
  type ReceiveDeps,
  type ReceiveResult,
  RoutesChanged,
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
import { ConnectionLimit } from '../smtp/connection-limit.ts'
import { BufferBudget, bufferFull, withBufferedMail } from '../smtp/mail-buffer.ts'
import { type RelayNetworks, senderKeyOf } from '../smtp/relay-networks.ts'
import {
  badRecipient,
  processingLimit,
  Refusal,
  temporaryFailure,
  tooManyMessages,
  tooManyUnknown,
} from '../smtp/replies.ts'

export interface InboundSessionDeps extends ReceiveDeps {
  log: Logger
  relays: RelayNetworks
  limits?: Partial<typeof limits>
}

const limits = {
  // Postfix opens 20 connections per destination (default_destination_concurrency_limit), and several Postfix
  // servers can share one address.
  clientsPerNetwork: 50,
  mailsPerMinute: 600,
  // Counts only messages whose envelope sender passes SPF: a forged sender does not use up the domain's
  // limit.
  mailsPerMinuteOfSender: 1200,
  // Far above the rate that a misconfiguration would cause; stops clients that guess addresses.
  unknownPerMinute: 100,
  mailsPerSession: 1000,
  // For messages being received or waiting to be committed. About four copies of each message are briefly
  // in memory. A network can use a quarter of the budget, which is more than the largest message needs.
  bufferBytes: 128 * 1024 * 1024,
}

const unknown = '5.1.1 Recipient address rejected: User unknown'
const notActiveYet = '4.3.0 Recipient address not active yet, try again later'
const unavailable = '4.3.0 Recipient address temporarily unavailable, try again later'

/**
 * Replies to RCPT; null means accepted. A client learns whether an address accepts mail, but not which
 * project owns it or why mail is rejected.
 */
const rcptReplies: Record<RoutingOutcome, [code: number, text: string] | null> = {
  endpoint: null,
  forward: null,
  drop: null,
  reject: [550, '5.7.1 Recipient address rejected by policy'],
  no_route: [550, unknown],
  no_domain: [550, unknown],
  held_elsewhere: [550, unknown],
  contested: [450, notActiveYet],
  project_locked: [450, unavailable],
  endpoint_inactive: [450, unavailable],
  domain_not_verified: [450, notActiveYet],
  provider_forwards_nothing: [450, unavailable],
  forward_not_confirmed: [450, notActiveYet],
}

const dataReplies: Record<TraceFault, [code: number, text: string]> = {
  loop: [554, '5.4.6 Routing loop detected'],
  nul: [554, '5.6.0 Message contains a NUL character'],
  header: [552, '5.3.4 Message header size exceeds fixed limit'],
}

/** The SMTP commands of the inbound MX. */
export class InboundSession {
  readonly connectionLimit: ConnectionLimit
  readonly #deps: InboundSessionDeps
  readonly #limits: typeof limits
  readonly #budget: BufferBudget
  readonly #mails: RateLimit
  readonly #unknown: RateLimit
  readonly #senders
  /** The project of each SMTP transaction, determined by its first recipient. */
  readonly #projects = new WeakMap<SMTPServerSession, number>()

  constructor(deps: InboundSessionDeps) {
    this.#deps = deps
    this.#limits = { ...limits, ...deps.limits }
    this.connectionLimit = new ConnectionLimit(this.#limits.clientsPerNetwork)
    this.#budget = new BufferBudget(this.#limits.bufferBytes)
    this.#mails = createRateLimit(this.#limits.mailsPerMinute, 'this network')
    this.#unknown = createRateLimit(this.#limits.unknownPerMinute, 'this network')
    this.#senders = createFailureLimit(this.#limits.mailsPerMinuteOfSender)
  }

  /** MAIL. */
  async begin({ address, args }: SMTPServerAddress, session: SMTPServerSession): Promise<void> {
    const network = networkOf(session.remoteAddress)
    if (session.transaction > this.#limits.mailsPerSession) {
      throw tooManyMessages()
    }
    if (this.#deps.analysisThreads.isSpent(senderKeyOf(this.#deps.relays, session.remoteAddress)))
      throw processingLimit()
    if (!this.#budget.makeRoom(args ? Number(args['SIZE'] ?? 0) : 0, network)) throw bufferFull()
    const isOver = await this.#mails(network).then(
      () => false,
      () => true,
    )
    // Reports have the null sender, which does not belong to a domain.
    if (isOver || (address !== '' && (await this.#senders.isReached(domainOf(address))))) {
      throw new Refusal(451, '4.7.1 Message rate limit exceeded, try again later')
    }
  }

  /** RCPT. */
  async checkRecipient({ address }: SMTPServerAddress, session: SMTPServerSession): Promise<void> {
    const read = readInternationalAddress(address)
    if ('fault' in read) throw badRecipient(read.fault)
    const routing = await this.#routingOf(read)
    const reply = rcptReplies[routing.outcome]
    if (reply?.[0] === 550) await this.#countUnknown(session)
    if (reply) {
      inboundMails.add({ outcome: 'refused' })
      if (routing.outcome === 'forward_not_confirmed') forwards.add({ outcome: 'unconfirmed' })
      throw new Refusal(...reply)
    }
    const addressee = addresseeOf(routing.domain?.projectId ?? 0)
    if (
      this.#deps.analysisThreads.isSpent(senderKeyOf(this.#deps.relays, session.remoteAddress, addressee))
    ) {
      throw processingLimit()
    }
    this.#requireSameProject(session, routing)
  }

  async #routingOf(address: Address): Promise<Routing> {
    try {
      const [routing] = await this.#deps.routes.readOne((tx) => routingsOf(tx, [address]))
      if (routing) return routing
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'recipient address lookup failed')
    }
    throw temporaryFailure()
  }

  async #countUnknown({ remoteAddress }: SMTPServerSession): Promise<void> {
    try {
      await this.#unknown(networkOf(remoteAddress))
    } catch {
      throw tooManyUnknown()
    }
  }

  /**
   * DATA has one reply for all recipients, and a message must not be rejected for one project because another
   * project's quota is exhausted. The client therefore has to use one transaction per project (RFC 5321
   * §4.5.3.1.10).
   */
  #requireSameProject(session: SMTPServerSession, { domain }: Routing): void {
    const projectId = domain?.projectId ?? 0
    const isFirst = session.envelope.rcptTo.length === 0
    if (!isFirst && this.#projects.get(session) !== projectId) {
      throw new Refusal(452, '4.5.3 Too many recipients, send to this recipient in a separate transaction')
    }
    this.#projects.set(session, projectId)
  }

  /**
   * DATA, read to its end. Resolves to the message id after the commit, or to undefined if the message is too
   * large.
   */
  async receive(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<string | undefined> {
    const owners = [networkOf(session.remoteAddress), addresseeOf(this.#projects.get(session) ?? 0)]
    return withBufferedMail(stream, { budget: this.#budget, owners, isShared: true }, async (raw) => {
      const { id } = await this.#receive(raw, session)
      return id
    })
  }

  async #receive(raw: Buffer, session: SMTPServerSession): Promise<ReceiveResult> {
    const { envelope, remoteAddress, hostNameAppearsAs, secure } = session
    const to = recipientsOf(session)
    const from = envelope.mailFrom ? envelope.mailFrom.address : ''
    try {
      const received = await receiveMail(this.#deps, {
        ...{ raw, from, to, isUtf8: envelope.smtpUtf8 === true },
        client: { ip: remoteAddress, helo: hostNameAppearsAs || 'unknown', isTls: secure },
        senderKey: senderKeyOf(
          this.#deps.relays,
          remoteAddress,
          addresseeOf(this.#projects.get(session) ?? 0),
        ),
      })
      const { id, projectId, actions, authentication } = received
      for (const outcome of actions) inboundMails.add({ outcome })
      this.#deps.log.info({ project_id: projectId, inbound_id: id, actions }, 'inbound mail received')
      if (from !== '' && authentication.spf.result === 'pass') await this.#senders.count(domainOf(from))
      return received
    } catch (error) {
      throw this.#refusalOf(error)
    }
  }

  /**
   * The client does not learn why a project cannot forward mail. Every cause can be corrected, so the reply
   * is temporary.
   */
  #refusalOf(error: unknown): Refusal {
    const { log } = this.#deps
    if (error instanceof NotReceivable) return new Refusal(...dataReplies[error.fault])
    inboundMails.add({ outcome: 'failed' })
    if (error instanceof RoutesChanged) return temporaryFailure()
    // RFC 7372 §3.2.
    if (error instanceof NotForwarded) {
      return error.isPermanent
        ? new Refusal(550, '5.7.26 Message fails DMARC for the domain in From')
        : new Refusal(451, '4.7.0 Sender authentication temporarily unavailable, try again later')
    }
    if (!(error instanceof PosternError)) {
      log.error({ err: error }, 'inbound mail not processed')
      return temporaryFailure()
    }
    if (error.code === 'rate_limited') return processingLimit()
    if (error.code === 'quota_exceeded')
      return new Refusal(452, '4.2.2 Recipient over quota, try again later')
    log.warn({ err: error }, 'inbound mail deferred; the sender will retry')
    return error.code === 'unavailable' ? temporaryFailure() : new Refusal(450, unavailable)
  }
}

const addresseeOf = (projectId: number): string => `project ${projectId}`

const domainOf = (sender: string): string => sender.slice(sender.lastIndexOf('@') + 1).toLowerCase()

/** Without duplicates. The syntax of the addresses was checked at RCPT. */
function recipientsOf({ envelope }: SMTPServerSession): Address[] {
  const byKey = new Map<string, Address>()
  for (const { address } of envelope.rcptTo) {
    const read = readInternationalAddress(address)
    if ('fault' in read) throw new Error('a recipient was not checked at RCPT')
    const key = addressText(read).toLowerCase()
    if (!byKey.has(key)) byKey.set(key, read)
  }
  return [...byKey.values()]
}
