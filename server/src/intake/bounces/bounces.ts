import { domainToASCII } from 'node:url'
import type { SMTPServerDataStream, SMTPServerSession } from 'smtp-server'
import type { ByteLimits } from '../../core/control/caps/caps.ts'
import { type FeedbackDeps, ingestReport } from '../../core/mail/feedback/ingest-report.ts'
import { decodeReturnPath } from '../../core/mail/feedback/return-path.ts'
import { isSrsPath, type SrsKeys } from '../../core/mail/feedback/srs-path.ts'
import type { AnalysisThreads } from '../../core/mail/inbound/analysis-threads.ts'
import { PosternError } from '../../platform/errors.ts'
import { createRateLimit, networkOf } from '../../platform/http/rate-limit.ts'
import type { Whose } from '../../platform/scheduling/fair-queue.ts'
import { metrics } from '../../platform/telemetry/metrics.ts'
import type { Certificate } from '../smtp/certificate.ts'
import { ConnectionLimit } from '../smtp/connection-limit.ts'
import { type Listener, listen } from '../smtp/listener.ts'
import { Budget, withBufferedMail } from '../smtp/mail-buffer.ts'
import { type RelayNetworks, whoseOf } from '../smtp/relay-networks.ts'
import { Refusal } from '../smtp/replies.ts'
import { StrictSmtpServer } from '../smtp/strict-server.ts'
import { isReporter, type Reporters } from './reporters.ts'

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
  /** Threads that parse reports. */
  examiners: AnalysisThreads
  /** Who may send complaints without a signature in the name of their sender. */
  reporters: Reporters
  relays: RelayNetworks
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
/** From one network. Large providers send a few a second. */
const complaintsPerMinute = 300

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
    crowd: new ConnectionLimit(maxClientsPerNetwork),
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

/** As an addressee: everybody's together, but for those of networks that are configured as reporters. */
const complaints = 'complaints'

const tooCostly = (): Refusal => new Refusal(451, '4.7.1 Processing time limit reached, try again later')

class Door {
  readonly #deps: BounceDeps
  readonly #budget = new Budget(maxHeldBytes)
  readonly #refused = createRateLimit(refusalsPerMinute, 'this address')
  readonly #complaints = createRateLimit(complaintsPerMinute, 'this network')

  constructor(deps: BounceDeps) {
    this.#deps = deps
  }

  /** Null for an address that something may be said to. */
  async expects(address: string, remoteAddress: string): Promise<Refusal | null> {
    const whose = this.#whoseOf(address, remoteAddress)
    if (whose) return this.#mayBegin(whose, this.#isForComplaints(address), remoteAddress)
    try {
      await this.#refused(networkOf(remoteAddress))
    } catch {
      return new Refusal(421, '4.7.0 Too many addresses that do not exist')
    }
    return new Refusal(550, '5.1.1 There is no such address here')
  }

  /**
   * Whose turns and budgets a report counts for; undefined for an address that there is not. A return path names the shard
   * of the project that has sent the mail: projects of one shard are one addressee.
   */
  #whoseOf(address: string, remoteAddress: string): Whose | undefined {
    const { keys, srsKeys, relays, reporters } = this.#deps
    const shard = decodeReturnPath(keys, address)?.shard
    if (shard !== undefined) return whoseOf(relays, remoteAddress, `shard ${shard}`)
    if (this.#isForComplaints(address)) {
      const isKnown = isReporter(reporters, { address: remoteAddress })
      return whoseOf(
        relays,
        remoteAddress,
        isKnown ? `complaints of ${networkOf(remoteAddress)}` : complaints,
      )
    }
    const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase()
    return isSrsPath(srsKeys, address)
      ? whoseOf(relays, remoteAddress, `return paths of ${domain}`)
      : undefined
  }

  #isForComplaints(address: string): boolean {
    const [, local = '', domain = ''] = /^(fbl|abuse)@(.+)$/i.exec(address) ?? []
    return local !== '' && domainToASCII(domain) === this.#deps.returnPathHost
  }

  async #mayBegin(whose: Whose, isComplaint: boolean, remoteAddress: string): Promise<Refusal | null> {
    if (this.#deps.examiners.isSpent(whose)) return tooCostly()
    if (!isComplaint || whose.isUnlimited) return null
    return this.#complaints(networkOf(remoteAddress)).then(
      () => null,
      () => new Refusal(451, '4.7.1 Too many complaint reports, try again later'),
    )
  }

  async take(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> {
    const address = session.envelope.rcptTo[0]?.address ?? ''
    const whose = this.#whoseOf(address, session.remoteAddress)
    if (!whose) throw new Error('a recipient that was not accepted')
    const holders = [networkOf(session.remoteAddress), whose.addressee]
    await withBufferedMail(stream, { budget: this.#budget, holders, isShared: true }, (raw) =>
      this.#apply(raw, address, whose, session.remoteAddress),
    )
  }

  /** Anybody can write to an address for complaints: a report counts if it is known who has sent it. */
  async #requireReporter(raw: Buffer, whose: Whose, remoteAddress: string): Promise<void> {
    const { examiners, reporters, log } = this.#deps
    if (isReporter(reporters, { address: remoteAddress })) return
    const signers = await examiners.verify(raw, whose)
    if (isReporter(reporters, { signers })) return
    if (signers.isIncomplete) throw new Refusal(451, '4.7.5 DKIM key lookup failed, try again later')
    metrics.reports.add({ kind: 'none', outcome: 'refused' })
    log.info({ size: raw.length }, 'a complaint report without a valid DKIM signature was refused')
    throw new Refusal(550, '5.7.1 Complaint reports need a valid DKIM signature aligned with From')
  }

  async #apply(raw: Buffer, address: string, whose: Whose, remoteAddress: string): Promise<void> {
    const { log, keys, examiners, returnPathHost: name } = this.#deps
    try {
      if (this.#isForComplaints(address)) await this.#requireReporter(raw, whose, remoteAddress)
      const read = await examiners.readReport(raw, whose)
      await ingestReport({ ...this.#deps, name }, { raw, read }, decodeReturnPath(keys, address))
    } catch (error) {
      if (error instanceof Refusal) throw error
      if (error instanceof PosternError && error.code === 'rate_limited') throw tooCostly()
      const isAway = error instanceof PosternError && error.code === 'unavailable'
      if (isAway) log.warn({ err: error }, 'a report could not be written down; it will come again')
      else log.error({ err: error }, 'a report could not be applied; it will come again')
      throw new Refusal(451, '4.3.0 Not now; come again')
    }
  }
}
