/**
 * The closed list of what can go wrong, as callers know it.
 *
 * A code is stable; its message is a sentence for a person that says what was wrong and what to do. Nothing
 * here knows HTTP: the status of a code is in platform/http/problem.ts. An error that is not a PosternError
 * is a bug or an outage, and its text never reaches a caller.
 */
export const errorCodes = [
  'invalid_json',
  'invalid_parameter',
  'unauthenticated',
  'token_expired',
  'admin_required',
  'api_key_not_allowed',
  'insufficient_scope',
  'insufficient_role',
  'address_not_allowed',
  'project_locked',
  'subscription_inactive',
  'domain_not_verified',
  'not_found',
  'method_not_allowed',
  'already_exists',
  'in_use',
  'request_in_progress',
  'secret_already_revealed',
  'domain_claimed',
  'last_owner',
  'last_administrator',
  'stale_resource',
  'body_too_large',
  'unsupported_media_type',
  'validation_failed',
  'reason_required',
  'limit_exceeded',
  'incomplete_configuration',
  'address_routes_unresolved',
  'plan_inactive',
  'provider_not_allowed',
  'idempotency_key_reused',
  'rate_limited',
  'quota_exceeded',
  'internal_error',
  'unavailable',
] as const

export type ErrorCode = (typeof errorCodes)[number]

export class PosternError extends Error {
  override readonly name = 'PosternError'
  readonly code: ErrorCode
  /** How long to wait before another try, where the code is about waiting. */
  readonly retryAfterSeconds: number | undefined
  /** Where the thing is that stands in the way, where a caller would go and look at it. */
  readonly location: string | undefined

  constructor(
    code: ErrorCode,
    message: string,
    options: { cause?: unknown; retryAfterSeconds?: number; location?: string | undefined } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.retryAfterSeconds = options.retryAfterSeconds
    this.location = options.location
  }
}

/** For programs started by a person at a shell: the message is all that is shown. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
