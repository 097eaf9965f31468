import { domainToASCII } from 'node:url'
import type { SMTPServerAddress, SMTPServerDataStream, SMTPServerSession } from 'smtp-server'
import { reportCount } from '../../core/mail/feedback/feedback.ts'
import { type FeedbackDeps, ingestReport } from '../../core/mail/feedback/ingest-report.ts'
import { decodeReturnPath, type VerpToken } from '../../core/mail/feedback/match-bounce.ts'
import { isSrsPath, type SrsKeys } from '../../core/mail/feedback/srs-path.ts'
import type { AnalysisThreads } from '../../core/mail/inbound/analysis-threads.ts'
import { PosternError } from '../../platform/errors.ts'
import { createRateLimit, networkOf } from '../../platform/http/rate-limit.ts'
import type { Whose } from '../../platform/scheduling/fair-queue.ts'
import { BufferBudget, withBufferedMail } from '../smtp/mail-buffer.ts'
import { type RelayNetworks, senderKeyOf } from '../smtp/relay-networks.ts'
import { processingLimit, Refusal, temporaryFailure, tooManyUnknown, userUnknown } from '../smtp/replies.ts'
import { isReporter, type Reporters } from './reporters.ts'

export interface BounceSessionDeps extends FeedbackDeps {
  /** Keys for the return paths of forwarded mail. */
  srsKeys: SrsKeys
  analysisThreads: AnalysisThreads
  /** Senders whose complaints are accepted without a DKIM signature aligned with From. */
  reporters: Reporters
  relays: RelayNetworks
  returnPathHost: string
}

export const maxBytes = 1024 * 1024
// Holds 64 reports of maximum size. A network can use a quarter of it.
const bufferBytes = 64 * maxBytes
// Far above the rate that a misconfiguration would cause; stops clients that guess return paths.
const refusalsPerMinute = 100
/** Per network. Large providers send a few per second. */
const complaintsPerMinute = 300

/** The shared addressee for all complaints, except those from networks that are configured as reporters. */
const complaints = 'complaints'

/** A recipient that exists. */
interface Recipient {
  /** The message that a return path identifies; undefined for other addresses. */
  mail: VerpToken | undefined
  isForComplaints: boolean
  /** The network and addressee that a report is charged to. */
  senderKey: Whose
}

/** The SMTP commands of the return-path MX: RCPT checks the address, DATA ingests the report. */
export class BounceSession {
  readonly #deps: BounceSessionDeps
  readonly #budget = new BufferBudget(bufferBytes)
  readonly #refused = createRateLimit(refusalsPerMinute, 'this address')
  readonly #complaints = createRateLimit(complaintsPerMinute, 'this network')
  /** The recipients accepted at RCPT. */
  readonly #recipients = new WeakMap<SMTPServerAddress, Recipient>()

  constructor(deps: BounceSessionDeps) {
    this.#deps = deps
  }

  /** RCPT. Null if the recipient is accepted. */
  async checkRecipient(address: SMTPServerAddress, remoteAddress: string): Promise<Refusal | null> {
    const recipient = this.#recipientOf(address.address, remoteAddress)
    if (recipient) {
      this.#recipients.set(address, recipient)
      return this.#checkLimits(recipient, remoteAddress)
    }
    try {
      await this.#refused(networkOf(remoteAddress))
    } catch {
      return tooManyUnknown()
    }
    return userUnknown()
  }

  /**
   * Undefined for an address that does not exist. A return path contains the sending project's shard: all projects
   * in a shard count as one addressee.
   */
  #recipientOf(address: string, remoteAddress: string): Recipient | undefined {
    const { keys, srsKeys, relays, reporters } = this.#deps
    const mail = decodeReturnPath(keys, address)
    const isForComplaints = !mail && this.#isForComplaints(address)
    const chargedTo = (addressee: string): Recipient => ({
      ...{ mail, isForComplaints, senderKey: senderKeyOf(relays, remoteAddress, addressee) },
    })
    if (mail) return chargedTo(`shard ${mail.shard}`)
    if (isForComplaints) {
      const isKnown = isReporter(reporters, { address: remoteAddress })
      return chargedTo(isKnown ? `complaints of ${networkOf(remoteAddress)}` : complaints)
    }
    const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase()
    return isSrsPath(srsKeys, address) ? chargedTo(`return paths of ${domain}`) : undefined
  }

  #isForComplaints(address: string): boolean {
    const [, local = '', domain = ''] = /^(fbl|abuse)@(.+)$/i.exec(address) ?? []
    return local !== '' && domainToASCII(domain) === this.#deps.returnPathHost
  }

  async #checkLimits(
    { senderKey, isForComplaints }: Recipient,
    remoteAddress: string,
  ): Promise<Refusal | null> {
    if (this.#deps.analysisThreads.isSpent(senderKey)) return processingLimit()
    if (!isForComplaints || senderKey.isUnlimited) return null
    return this.#complaints(networkOf(remoteAddress)).then(
      () => null,
      () => new Refusal(451, '4.7.1 Too many complaint reports, try again later'),
    )
  }

  /** DATA. Resolves when the report is committed. */
  async receive(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> {
    const [address] = session.envelope.rcptTo
    const recipient = address && this.#recipients.get(address)
    if (!recipient) throw new Error('a recipient was not accepted at RCPT')
    const owners = [networkOf(session.remoteAddress), recipient.senderKey.addressee]
    await withBufferedMail(stream, { budget: this.#budget, owners, isShared: true }, (raw) =>
      this.#ingest(raw, recipient, session.remoteAddress),
    )
  }

  /**
   * Any client can send mail to a complaint address, so a report is accepted only if its sender is
   * authenticated.
   */
  async #requireReporter(raw: Buffer, senderKey: Whose, remoteAddress: string): Promise<void> {
    const { analysisThreads, reporters, log } = this.#deps
    if (isReporter(reporters, { address: remoteAddress })) return
    const signers = await analysisThreads.verify(raw, senderKey)
    if (isReporter(reporters, { signers })) return
    if (signers.isIncomplete) throw new Refusal(451, '4.7.5 DKIM key lookup failed, try again later')
    reportCount.add({ kind: 'none', outcome: 'refused' })
    log.info({ size: raw.length }, 'complaint report without a valid DKIM signature rejected')
    throw new Refusal(550, '5.7.1 Complaint reports require a valid DKIM signature aligned with From')
  }

  async #ingest(
    raw: Buffer,
    { mail, isForComplaints, senderKey }: Recipient,
    remoteAddress: string,
  ): Promise<void> {
    const { log, analysisThreads } = this.#deps
    try {
      if (isForComplaints) await this.#requireReporter(raw, senderKey, remoteAddress)
      const read = await analysisThreads.readReport(raw, senderKey)
      await ingestReport(this.#deps, { raw, read }, mail)
    } catch (error) {
      if (error instanceof Refusal) throw error
      if (error instanceof PosternError && error.code === 'rate_limited') throw processingLimit()
      const isUnavailable = error instanceof PosternError && error.code === 'unavailable'
      if (isUnavailable)
        log.warn(
          { err: error },
          'report not stored because the database is unavailable; the sender will retry',
        )
      else log.error({ err: error }, 'report not processed; the sender will retry')
      throw temporaryFailure()
    }
  }
}
