import { type ErrorCode, PosternError } from '../../platform/errors.ts'

/** An SMTP error reply: the reply code, and a text that begins with the enhanced status code (RFC 3463). */
export class Refusal extends Error {
  readonly responseCode: number

  constructor(responseCode: number, text: string) {
    super(text)
    this.responseCode = responseCode
  }
}

interface ReplyCodes {
  code: number
  status: string
}

/** An internal or unknown failure: the client keeps the message and retries. */
const failed: ReplyCodes = { code: 451, status: '4.3.0' }
/** RFC 6409 §6.1: the client is not authorized to submit. The text states the reason. */
const notAuthorized: ReplyCodes = { code: 550, status: '5.7.1' }
/**
 * The key was valid at AUTH but no longer is. After 421 the client reconnects, gets 535 and keeps its mail; a
 * permanent reply would make the client bounce the message.
 */
const keyRevoked: ReplyCodes = { code: 421, status: '4.7.0' }

/** The reply for every error code. Error codes that cannot occur for mail map to an internal failure. */
export const replies: Record<ErrorCode, ReplyCodes> = {
  unauthenticated: keyRevoked,
  insufficient_scope: keyRevoked,
  address_not_allowed: keyRevoked,
  project_locked: notAuthorized,
  subscription_inactive: notAuthorized,
  domain_not_verified: notAuthorized,
  provider_not_allowed: notAuthorized,
  not_found: notAuthorized,
  body_too_large: { code: 552, status: '5.3.4' },
  validation_failed: { code: 554, status: '5.6.0' },
  // The quota resets the next day or the next month.
  quota_exceeded: { code: 452, status: '4.7.1' },
  rate_limited: { code: 451, status: '4.7.1' },
  internal_error: failed,
  unavailable: failed,
  request_in_progress: failed,

  invalid_json: failed,
  invalid_parameter: failed,
  token_expired: failed,
  admin_required: failed,
  api_key_not_allowed: failed,
  insufficient_role: failed,
  insufficient_rights: failed,
  already_exists: failed,
  in_use: failed,
  secret_already_revealed: failed,
  domain_claimed: failed,
  last_owner: failed,
  last_administrator: failed,
  already_ended: failed,
  changed_since: failed,
  not_reversible: failed,
  stale_resource: failed,
  method_not_allowed: failed,
  unsupported_media_type: failed,
  reason_required: failed,
  limit_exceeded: failed,
  incomplete_configuration: failed,
  address_routes_unresolved: failed,
  plan_inactive: failed,
  idempotency_key_reused: failed,
}

const tryLater = 'Temporary failure, try again later'

/** Replies that several listeners send. */
export const temporaryFailure = (): Refusal => new Refusal(failed.code, `${failed.status} ${tryLater}`)
export const processingLimit = (): Refusal =>
  new Refusal(451, '4.7.1 Processing time limit reached, try again later')
export const userUnknown = (): Refusal => new Refusal(550, '5.1.1 Recipient address rejected: User unknown')
export const tooManyUnknown = (): Refusal => new Refusal(421, '4.7.0 Too many unknown recipients')
export const tooManyMessages = (): Refusal => new Refusal(421, '4.7.0 Too many messages in one session')
export const badRecipient = (fault: string): Refusal =>
  new Refusal(553, `5.1.3 Bad recipient address syntax: the address ${fault}`)

// RFC 5321 §4.5.3.1.5: 512 octets, including the code and CRLF.
const maxTextLength = 480

/** The text of an error that is not a PosternError is never sent to the client. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  const code = error instanceof PosternError ? error.code : 'internal_error'
  const reply = replies[code]
  const detail =
    reply === keyRevoked
      ? 'API key is no longer valid for sending, authenticate again'
      : reply === failed
        ? tryLater
        : (error as Error).message
  const text = `${reply.status} ${detail}`.replace(/[^\x20-\x7e]+/g, '?')
  return new Refusal(reply.code, text.slice(0, maxTextLength))
}
