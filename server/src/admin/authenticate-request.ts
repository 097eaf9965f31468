import type { FastifyRequest } from 'fastify'
import {
  type Authenticate,
  refuseApiKey,
  requireAdministrator,
  type User,
} from '../core/control/access/verify-access-token.ts'
import { DenialCounter } from '../core/control/audit/denials.ts'
import type { Db } from '../platform/db/db.ts'
import { PosternError } from '../platform/errors.ts'
import { operationIdOf } from '../platform/http/operation-id.ts'
import { statusOf } from '../platform/http/problem.ts'
import { networkOf, type RateLimit, setRateLimitHeaders } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { isDryRun } from './preview.ts'
import { type OperationId, requireRights, requireRightsForFields } from './rights.ts'

/**
 * Authenticates every request to the administrative plane, including unknown paths: only administrators learn which
 * paths exist.
 *
 * A body can take a long time to arrive, and the caller may lose the role or rights in the meantime. If authentication is older
 * than `reauthenticateAfterMs`, it is repeated before the handler runs.
 *
 * Checks in order: 429 per address, 403 for an API key, 401, 403 for the role, 403 for the rights, 429 per user. Rights that
 * are limited to some fields are checked as soon as the body is parsed.
 */
export interface AuthenticateDeps {
  authenticate: Authenticate
  addressLimit: RateLimit
  userLimit: RateLimit
  db: Db
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The user of a valid token, administrator or not; null before authentication. */
    user: User | null
    /** `performance.now()` of the last authentication. */
    authenticatedAt: number
  }
}

/** A request whose body arrives promptly is authenticated once. */
const reauthenticateAfterMs = 1_000

export function authenticateRequests(
  plane: HttpServer,
  { authenticate, addressLimit, userLimit, db }: AuthenticateDeps,
): void {
  const denials = new DenialCounter(db)
  plane.decorateRequest('user', null)
  plane.decorateRequest('authenticatedAt', 0)
  const identify = async (request: FastifyRequest): Promise<User> => {
    request.authenticatedAt = performance.now()
    request.user = await authenticate(request.headers.authorization)
    authorize(request)
    return request.user
  }
  plane.addHook('onRequest', async (request, reply) => {
    await addressLimit(networkOf(request.ip))
    refuseApiKey(request.headers.authorization)
    const { id } = await identify(request)
    setRateLimitHeaders(reply, await userLimit(id))
  })
  plane.addHook('preValidation', async (request) => authorize(request))
  plane.addHook('preHandler', async (request) => {
    if (performance.now() - request.authenticatedAt > reauthenticateAfterMs) await identify(request)
  })
  plane.addHook('onError', async (request, _reply, error: unknown) => {
    if (!isDenial(request, error)) return
    try {
      await denials.count(denialOf(request, error))
    } catch (failure) {
      request.log.error({ err: failure }, 'denied request could not be recorded')
    }
  })
}

/** The body is undefined until it is parsed. */
function authorize(request: FastifyRequest): void {
  const { user, body } = request
  if (user === null) throw new Error('a request was authorized before authentication')
  requireAdministrator(user)
  const operation = operationIdOf(request) as OperationId | undefined
  // An unknown path, or a method that the path does not support: only administrators learn that.
  if (operation === undefined) return
  requireRights(operation, user.rights)
  requireRightsForFields(operation, user.rights, body)
}

const changing = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/** Whether the request was rejected because of the role or the rights, or was a mutation rejected by a rule. */
function isDenial(request: FastifyRequest, error: unknown): error is PosternError {
  if (request.user === null || !(error instanceof PosternError)) return false
  const status = statusOf[error.code]
  if (status === 403) return true
  // An unknown path is not a denial.
  if (operationIdOf(request) === undefined) return false
  const isChange = changing.has(request.method) && request.routeOptions.config.isRead !== true
  return isChange && !isDryRun(request.query) && [404, 409, 412, 422].includes(status)
}

function denialOf(request: FastifyRequest, error: PosternError) {
  const { project_id } = request.params as { project_id?: unknown }
  return {
    actorId: request.user?.id ?? 0,
    operation: operationIdOf(request) ?? 'unknown',
    error: error.code,
    projectId: typeof project_id === 'number' ? project_id : null,
    requestId: request.id,
  }
}
