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
import { BufferBudget, bufferFull, withBufferedMail } from '../smtp/mail-buffer.ts'
import { badRecipient, Refusal, tooManyMessages } from '../smtp/replies.ts'

export interface SubmissionSessionDeps {
  acceptance: Accepts
  keys: BatchedKeyLookup
  /** Shared with the HTTP API. */
  keyLimit: RateLimit
  uses: LastUsed
  /** Host name in the greeting and in Received. */
  name: string
  log: Logger
  limits?: Partial<typeof limits>
}

const limits = {
  // Postfix opens 20 connections per destination (default_destination_concurrency_limit), and several Postfix
  // servers can share one address.
  clientsPerNetwork: 50,
  // A key has 256 random bits, so guessing is not a concern; this limits database lookups.
  failedAuthPerMinute: 60,
  mailsPerSession: 1000,
  // For messages being received or waiting to be committed. About four copies of each message are briefly
  // in memory. Regardless of its number of keys, a project can use a quarter of the budget, which is more
  // than the largest message needs.
  bufferBytes: 128 * 1024 * 1024,
}

const scope: ApiKeyScope = 'messages:send'

/** The authenticated key, without its secret. */
interface AuthenticatedKey {
  keyId: number
  projectId: number
  secretHash: Buffer
}

/** The SMTP commands for submission. */
export class SubmissionSession {
  readonly connectionLimit: ConnectionLimit
  readonly #deps: SubmissionSessionDeps
  readonly #limits: typeof limits
  readonly #failedAuth
  readonly #budget: BufferBudget

  constructor(deps: SubmissionSessionDeps) {
    this.#deps = deps
    this.#limits = { ...limits, ...deps.limits }
    this.connectionLimit = new ConnectionLimit(this.#limits.clientsPerNetwork)
    this.#failedAuth = createFailureLimit(this.#limits.failedAuthPerMinute)
    this.#budget = new BufferBudget(this.#limits.bufferBytes)
  }

  /**
   * An invalid key is looked up and gets the same reply whatever the cause: unknown, rotated, inactive,
   * expired, without the required scope, used from a disallowed address, or malformed.
   */
  async authenticate(password: string, { remoteAddress }: SMTPServerSession): Promise<AuthenticatedKey> {
    const network = networkOf(remoteAddress)
    if (await this.#failedAuth.isReached(network))
      throw new Refusal(421, '4.7.0 Too many authentication failures')
    const secretHash = hashOf(password)
    try {
      const { id, project_id } = await this.#keyOf(secretHash, remoteAddress)
      return { keyId: id, projectId: project_id, secretHash }
    } catch (error) {
      if (!isAuthFailure(error)) {
        this.#deps.log.warn({ err: error }, 'API key lookup failed')
        throw new Refusal(454, '4.7.0 Temporary authentication failure, try again later')
      }
      await this.#failedAuth.count(network)
      throw new Refusal(
        535,
        '5.7.8 Authentication failed: the password must be a valid API key allowed to send from this address',
      )
    }
  }

  /** MAIL. The envelope sender is not checked, because mail is sent with Postern's own return path. */
  async begin({ args }: SMTPServerAddress, session: SMTPServerSession): Promise<void> {
    if (!session.secure) throw new Refusal(530, '5.7.0 Must issue a STARTTLS command first')
    const { keyId, projectId } = authenticatedKeyOf(session)
    if (session.transaction > this.#limits.mailsPerSession) {
      throw tooManyMessages()
    }
    const size = args ? Number(args['SIZE'] ?? 0) : 0
    if (!this.#budget.makeRoom(size, `${projectId}`)) {
      throw bufferFull()
    }
    // Counts like a request to the API.
    await this.#deps.keyLimit(`key:${keyId}`)
  }

  /** RCPT. */
  checkRecipient({ address }: SMTPServerAddress, { envelope }: SMTPServerSession): Refusal | null {
    const read = readInternationalAddress(address)
    if ('fault' in read) return badRecipient(read.fault)
    if (!envelope.smtpUtf8 && /[^\0-\x7f]/.test(read.local)) {
      return new Refusal(553, '5.6.7 Must declare SMTPUTF8 to send unicode address')
    }
    return null
  }

  /**
   * DATA, read to its end. Resolves to the message id after the commit, or to undefined if the message is too
   * large.
   */
  async receive(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<string | undefined> {
    const owner = `${authenticatedKeyOf(session).projectId}`
    return withBufferedMail(stream, { budget: this.#budget, owners: [owner] }, async (raw) => {
      try {
        return await this.#accept(raw, session)
      } catch (error) {
        this.#log(error)
        throw error
      }
    })
  }

  async #accept(raw: Buffer, session: SMTPServerSession): Promise<string> {
    const { acceptance, uses, name, log } = this.#deps
    const { envelope, remoteAddress } = session
    // Sessions can be long, so a key that was valid at AUTH may have become invalid.
    const key = await this.#keyOf(authenticatedKeyOf(session).secretHash, remoteAddress)
    const arrival = { allowsUtf8: envelope.smtpUtf8 === true, host: name, at: new Date() }
    const mail = readSubmittedDraft(raw, recipientsOf(session), arrival)
    const span = beginTrace('submission', {
      kind: SpanKind.SERVER,
      attributes: { 'postern.project_id': key.project_id },
    })
    const trace = span?.spanContext()
    const result = await within(span, () =>
      acceptance.accept({ sender: senderOfKey(key), mails: [mail], trace }, 'smtp'),
    )
    uses.record(key)
    const [outcome] = 'outcomes' in result ? result.outcomes : []
    if (!outcome || 'refused' in outcome)
      throw outcome?.refused ?? new Error('acceptance returned no outcome')
    const { id } = outcome.accepted
    log.info({ project_id: key.project_id, api_key_id: key.id, message_id: id }, 'mail submitted')
    return id
  }

  async #keyOf(secretHash: Buffer, remoteAddress: string): Promise<ApiKeyRow> {
    const key = await authenticateKeyHash((hash) => this.#deps.keys.find(hash), secretHash, remoteAddress)
    if (!key.scopes.includes(scope)) {
      throw new PosternError('insufficient_scope', `An API key with the scope ${scope} is required.`)
    }
    return key
  }

  #log(error: unknown): void {
    const { log } = this.#deps
    if (!(error instanceof PosternError)) log.error({ err: error }, 'submitted mail not processed')
    else if (error.code === 'unavailable')
      log.warn({ err: error }, 'submitted mail not stored because the database is unavailable')
  }
}

const isAuthFailure = (error: unknown): boolean =>
  error instanceof PosternError &&
  ['unauthenticated', 'address_not_allowed', 'insufficient_scope'].includes(error.code)

function authenticatedKeyOf({ user }: SMTPServerSession): AuthenticatedKey {
  if (!user) throw new Refusal(530, '5.7.0 Authentication required')
  return user as AuthenticatedKey
}

/** As stored, without duplicates. The syntax of the addresses was checked at RCPT. */
function recipientsOf({ envelope }: SMTPServerSession): string[] {
  const byKey = new Map<string, string>()
  for (const { address } of envelope.rcptTo) {
    const read = readInternationalAddress(address)
    if ('fault' in read) throw new Error('a recipient was not checked at RCPT')
    const text = addressText(read)
    if (!byKey.has(text.toLowerCase())) byKey.set(text.toLowerCase(), text)
  }
  return [...byKey.values()]
}
