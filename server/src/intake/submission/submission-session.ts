import type { SMTPServerAddress, SMTPServerDataStream, SMTPServerSession } from 'smtp-server'
import type { ApiKeyRow } from '../../core/control/api-keys/api-keys.ts'
import { authenticateKeyHash } from '../../core/control/api-keys/authenticate.ts'
import type { BatchedKeyLookup } from '../../core/control/api-keys/batched-key-lookup.ts'
import type { LastUsed } from '../../core/control/api-keys/last-used.ts'
import type { ApiKeyScope } from '../../core/control/api-keys/scopes.ts'
import { hashOf } from '../../core/control/api-keys/secret.ts'
import type { Accepts } from '../../core/mail/messages/acceptance.ts'
import { senderOfKey } from '../../core/mail/messages/sending-checks.ts'
import { readSubmittedDraft } from '../../core/mail/messages/submitted-draft.ts'
import { addressText, readInternationalAddress } from '../../formats/address.ts'
import { PosternError } from '../../platform/errors.ts'
import { createFailureLimit, networkOf, type RateLimit } from '../../platform/http/rate-limit.ts'
import type { Logger } from '../../platform/telemetry/log.ts'
import { beginTrace, SpanKind, within } from '../../platform/telemetry/tracing.ts'
import { ConnectionLimit } from '../smtp/connection-limit.ts'
import { Budget, withBufferedMail } from '../smtp/mail-buffer.ts'
import { Refusal } from '../smtp/replies.ts'

export interface SubmissionSessionDeps {
  acceptance: Accepts
  keys: BatchedKeyLookup
  /** Shared with the other ways to send. */
  keyLimit: RateLimit
  uses: LastUsed
  /** As which we greet, and are named in Received. */
  name: string
  log: Logger
  limits?: Partial<typeof limits>
}

const limits = {
  // Postfix opens 20 to one place (default_destination_concurrency_limit), and there may be a few behind one address.
  clientsPerNetwork: 50,
  // A key has 256 random bits, so this keeps nobody from guessing: it keeps the database from being asked.
  wrongKeysPerMinute: 60,
  mailsPerSession: 1000,
  // Of mails that come in or wait for their commit. For a moment each is in memory about four times. A project has a
  // quarter of it, however many keys it has, which is more than the largest mail.
  heldBytes: 128 * 1024 * 1024,
}

const scope: ApiKeyScope = 'messages:send'

/** Who signed in. The secret itself is not kept. */
interface Holder {
  keyId: number
  projectId: number
  secretHash: Buffer
}

/** What is said to each command of a submission, and what is done. */
export class SubmissionSession {
  readonly crowd: ConnectionLimit
  readonly #deps: SubmissionSessionDeps
  readonly #limits: typeof limits
  readonly #wrongKeys
  readonly #budget: Budget

  constructor(deps: SubmissionSessionDeps) {
    this.#deps = deps
    this.#limits = { ...limits, ...deps.limits }
    this.crowd = new ConnectionLimit(this.#limits.clientsPerNetwork)
    this.#wrongKeys = createFailureLimit(this.#limits.wrongKeysPerMinute)
    this.#budget = new Budget(this.#limits.heldBytes)
  }

  /**
   * Whatever is wrong with a key (unknown, rotated, switched off, expired, without the scope, from another address, no
   * key at all), it is looked up, and the answer is the same.
   */
  async signIn(password: string, { remoteAddress }: SMTPServerSession): Promise<Holder> {
    const network = networkOf(remoteAddress)
    if (await this.#wrongKeys.isReached(network)) throw new Refusal(421, '4.7.0 Too many wrong keys')
    const secretHash = hashOf(password)
    try {
      const { id, project_id } = await this.#keyOf(secretHash, remoteAddress)
      return { keyId: id, projectId: project_id, secretHash }
    } catch (error) {
      if (!isWrongKey(error)) {
        this.#deps.log.warn({ err: error }, 'a key could not be looked up')
        throw new Refusal(454, '4.7.0 Not now; come again')
      }
      await this.#wrongKeys.count(network)
      throw new Refusal(535, '5.7.8 The password must be a living API key that may send from this address')
    }
  }

  /** MAIL. The sender of the envelope may be anybody: mail leaves with a return path of ours. */
  async begin({ args }: SMTPServerAddress, session: SMTPServerSession): Promise<void> {
    if (!session.secure) throw new Refusal(530, '5.7.0 Must issue a STARTTLS command first')
    const { keyId, projectId } = holderOf(session)
    if (session.transaction > this.#limits.mailsPerSession) {
      throw new Refusal(421, '4.7.0 That is enough for one connection; open another')
    }
    const size = args ? Number(args['SIZE'] ?? 0) : 0
    if (!this.#budget.makeRoom(size, `${projectId}`)) {
      throw new Refusal(452, '4.3.1 Too much mail at once; come again')
    }
    // Counted as the API counts requests.
    await this.#deps.keyLimit(`key:${keyId}`)
  }

  /** RCPT. */
  recipientFault({ address }: SMTPServerAddress, { envelope }: SMTPServerSession): Refusal | null {
    const read = readInternationalAddress(address)
    if ('fault' in read) return new Refusal(553, `5.1.3 The address ${read.fault}`)
    if (!envelope.smtpUtf8 && /[^\0-\x7f]/.test(read.local)) {
      return new Refusal(553, '5.6.7 This address needs SMTPUTF8')
    }
    return null
  }

  /** DATA, to its end. The id of the message, once it is committed; undefined for one that is too large. */
  async take(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<string | undefined> {
    const whose = `${holderOf(session).projectId}`
    return withBufferedMail(stream, { budget: this.#budget, holders: [whose] }, async (raw) => {
      try {
        return await this.#accept(raw, session)
      } catch (error) {
        this.#tell(error)
        throw error
      }
    })
  }

  async #accept(raw: Buffer, session: SMTPServerSession): Promise<string> {
    const { acceptance, uses, name, log } = this.#deps
    const { envelope, remoteAddress } = session
    // A session may be long: a key that was good when it began may not be now.
    const key = await this.#keyOf(holderOf(session).secretHash, remoteAddress)
    const arrival = { allowsUtf8: envelope.smtpUtf8 === true, host: name, at: new Date() }
    const mail = readSubmittedDraft(raw, recipientsOf(session), arrival)
    const span = beginTrace('submission', {
      kind: SpanKind.SERVER,
      attributes: { 'postern.project_id': key.project_id },
    })
    const trace = span?.spanContext()
    const answer = await within(span, () =>
      acceptance.accept({ sender: senderOfKey(key), mails: [mail], trace }, 'smtp'),
    )
    uses.note(key)
    const [outcome] = 'outcomes' in answer ? answer.outcomes : []
    if (!outcome || 'refused' in outcome) throw outcome?.refused ?? new Error('a mail without a verdict')
    const { id } = outcome.accepted
    log.info({ project_id: key.project_id, api_key_id: key.id, message_id: id }, 'a mail was submitted')
    return id
  }

  async #keyOf(secretHash: Buffer, remoteAddress: string): Promise<ApiKeyRow> {
    const key = await authenticateKeyHash((hash) => this.#deps.keys.find(hash), secretHash, remoteAddress)
    if (!key.scopes.includes(scope)) {
      throw new PosternError('insufficient_scope', `This takes an API key with the scope ${scope}.`)
    }
    return key
  }

  #tell(error: unknown): void {
    const { log } = this.#deps
    if (!(error instanceof PosternError)) log.error({ err: error }, 'a submitted mail could not be accepted')
    else if (error.code === 'unavailable')
      log.warn({ err: error }, 'a submitted mail could not be written down')
  }
}

const isWrongKey = (error: unknown): boolean =>
  error instanceof PosternError &&
  ['unauthenticated', 'address_not_allowed', 'insufficient_scope'].includes(error.code)

function holderOf({ user }: SMTPServerSession): Holder {
  if (!user) throw new Refusal(530, '5.7.0 Authentication required')
  return user as Holder
}

/** As they are stored, each once. They were read at RCPT. */
function recipientsOf({ envelope }: SMTPServerSession): string[] {
  const byKey = new Map<string, string>()
  for (const { address } of envelope.rcptTo) {
    const read = readInternationalAddress(address)
    if ('fault' in read) throw new Error('a recipient that was not looked at')
    const text = addressText(read)
    if (!byKey.has(text.toLowerCase())) byKey.set(text.toLowerCase(), text)
  }
  return [...byKey.values()]
}
