import { type ErrorCode, PosternError } from '../../platform/errors.ts'

/** What is said to a client, with its code; the enhanced status (RFC 3463) stands first in the text. */
export class Refusal extends Error {
  readonly responseCode: number

  constructor(responseCode: number, text: string) {
    super(text)
    this.responseCode = responseCode
  }
}

interface Reply {
  code: number
  status: string
}

/** Nobody is at fault but us, or nobody knows: the client keeps the mail and comes again. */
const notNow: Reply = { code: 451, status: '4.3.0' }
/** RFC 6409 §6.1: who submits has no right to. The words say why. */
const noRight: Reply = { code: 550, status: '5.7.1' }
/**
 * The key was good at AUTH, and is not any more. A client that is shown out comes again, is told 535, and keeps its mail;
 * one that is refused here for good would return it.
 */
const shownOut: Reply = { code: 421, status: '4.7.0' }

/**
 * What a client is told whose mail is refused, for every error there is. Those that no mail can meet are answered as
 * what they would be: a mistake of ours.
 */
export const replies: Record<ErrorCode, Reply> = {
  unauthenticated: shownOut,
  insufficient_scope: shownOut,
  address_not_allowed: shownOut,
  project_locked: noRight,
  subscription_inactive: noRight,
  domain_not_verified: noRight,
  provider_not_allowed: noRight,
  not_found: noRight,
  body_too_large: { code: 552, status: '5.3.4' },
  validation_failed: { code: 554, status: '5.6.0' },
  // Tomorrow, or next month, there is room again.
  quota_exceeded: { code: 452, status: '4.7.1' },
  rate_limited: { code: 451, status: '4.7.1' },
  internal_error: notNow,
  unavailable: notNow,
  request_in_progress: notNow,

  invalid_json: notNow,
  invalid_parameter: notNow,
  token_expired: notNow,
  admin_required: notNow,
  api_key_not_allowed: notNow,
  insufficient_role: notNow,
  already_exists: notNow,
  in_use: notNow,
  secret_already_revealed: notNow,
  domain_claimed: notNow,
  last_owner: notNow,
  last_administrator: notNow,
  stale_resource: notNow,
  unsupported_media_type: notNow,
  reason_required: notNow,
  limit_exceeded: notNow,
  incomplete_configuration: notNow,
  address_routes_unresolved: notNow,
  plan_inactive: notNow,
  idempotency_key_reused: notNow,
}

// RFC 5321 §4.5.3.1.5: 512 octets with the code and the line end.
const maxTextLength = 480

/** The text of an error that is not a PosternError reaches nobody. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  const code = error instanceof PosternError ? error.code : 'internal_error'
  const reply = replies[code]
  const words =
    reply === shownOut
      ? 'This API key is not good for sending any more; sign in again'
      : reply === notNow
        ? 'Not now; come again'
        : (error as Error).message
  const text = `${reply.status} ${words}`.replace(/[^\x20-\x7e]+/g, '?')
  return new Refusal(reply.code, text.slice(0, maxTextLength))
}
