import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import { type ErrorCode, errorCodes, PosternError } from '../errors.ts'
import { Counter } from '../telemetry/metrics.ts'
import { leaveBodyUnread } from './unread-body.ts'
import { validationMessage } from './validation-messages.ts'

const problemCount = new Counter('postern_http_problems_total', 'Failed HTTP requests, by error code.', {
  code: errorCodes,
})

/**
 * Maps errors to responses: a status and a body with exactly two fields, `error` and `message`.
 */
export const statusOf: Record<ErrorCode, number> = {
  invalid_json: 400,
  invalid_parameter: 400,
  unauthenticated: 401,
  token_expired: 401,
  admin_required: 403,
  api_key_not_allowed: 403,
  insufficient_scope: 403,
  insufficient_role: 403,
  insufficient_rights: 403,
  address_not_allowed: 403,
  project_locked: 403,
  subscription_inactive: 403,
  domain_not_verified: 403,
  not_found: 404,
  method_not_allowed: 405,
  already_exists: 409,
  in_use: 409,
  request_in_progress: 409,
  secret_already_revealed: 409,
  domain_claimed: 409,
  last_owner: 409,
  last_administrator: 409,
  already_ended: 409,
  changed_since: 409,
  not_reversible: 409,
  stale_resource: 412,
  body_too_large: 413,
  unsupported_media_type: 415,
  validation_failed: 422,
  reason_required: 422,
  limit_exceeded: 422,
  incomplete_configuration: 422,
  address_routes_unresolved: 422,
  plan_inactive: 422,
  provider_not_allowed: 422,
  idempotency_key_reused: 422,
  rate_limited: 429,
  quota_exceeded: 429,
  internal_error: 500,
  unavailable: 503,
}

export const Problem = Type.Object(
  {
    error: Type.Enum([...errorCodes], {
      type: 'string',
      description: 'A stable, machine-readable code from a fixed list.',
    }),
    message: Type.String({
      description: 'A human-readable sentence that explains the problem and how to fix it.',
    }),
  },
  {
    title: 'Problem',
    additionalProperties: false,
    examples: [{ error: 'not_found', message: 'There is no project 4711.' }],
  },
)

export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = asPosternError(error)
  const status = statusOf[problem.code]
  problemCount.add({ code: problem.code })
  if (status >= 500) request.log.error({ err: error }, 'request failed')
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  if (problem.retryAfterSeconds !== undefined) reply.header('retry-after', problem.retryAfterSeconds)
  if (problem.location !== undefined) reply.header('location', problem.location)
  // Fastify closes the connection if it rejects a body that is too large, without reading the rest.
  if (reply.getHeader('connection') === 'close' && !request.raw.complete) leaveBodyUnread(request, reply)
  const body: Static<typeof Problem> = { error: problem.code, message: problem.message }
  return reply.status(status).type('application/json; charset=utf-8').send(JSON.stringify(body))
}

function asPosternError(error: unknown): PosternError {
  if (error instanceof PosternError) {
    // The text of an internal error is only logged.
    return error.code === 'internal_error' ? internal(error) : error
  }
  if (error instanceof Error && 'code' in error) {
    const known = fromFastify(error as FastifyError)
    if (known) return known
  }
  return internal(error)
}

const internal = (cause: unknown): PosternError =>
  new PosternError(
    'internal_error',
    'An internal error occurred. The server log contains the details under the request id of this response.',
    { cause },
  )

function fromFastify(error: FastifyError): PosternError | undefined {
  switch (error.code) {
    case 'FST_ERR_VALIDATION':
      return error.validationContext === 'body'
        ? new PosternError('validation_failed', validationMessage(error.validation ?? []))
        : new PosternError('invalid_parameter', validationMessage(error.validation ?? [], 'parameter'))
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new PosternError('invalid_json', 'The body length does not match Content-Length.')
    // Node reports this if the client disconnects or sends malformed data within the body. The client does not get the response.
    case 'ECONNRESET':
      return error.message === 'aborted'
        ? new PosternError('invalid_json', 'The body ended before it was complete.')
        : undefined
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new PosternError('body_too_large', 'The body is larger than this operation accepts.')
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
    case 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE':
      return new PosternError(
        'unsupported_media_type',
        'Send the body as JSON, with Content-Type: application/json.',
      )
    case 'FST_ERR_MAX_PARAM_LENGTH':
    case 'FST_ERR_BAD_URL':
      return new PosternError('invalid_parameter', 'The request URL is malformed.')
    default:
      return undefined
  }
}
