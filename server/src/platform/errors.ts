/**
 * The closed list of error codes.
 *
 * A code is stable. Its message is a human-readable sentence that states the problem and the remedy. HTTP statuses are in
 * platform/http/problem.ts. An error that is not a PosternError is a bug or an outage, and its text never reaches a caller.
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
  'insufficient_rights',
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
  'already_ended',
  'changed_since',
  'not_reversible',
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
  /** How long the caller should wait before a retry. */
  readonly retryAfterSeconds: number | undefined
  /** The path of the conflicting resource. */
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

/** A command-line error: only the message is printed, without a stack trace. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
