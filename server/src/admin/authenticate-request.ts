import type { FastifyRequest } from 'fastify'
import {
  type Authenticate,
  refuseApiKey,
  requireAdministrator,
  type User,
} from '../core/control/access/bearer.ts'
import { DenialCounter } from '../core/control/audit/denials.ts'
import type { Db } from '../platform/db/db.ts'
import { PosternError } from '../platform/errors.ts'
import { operationIdOf } from '../platform/http/operation-id.ts'
import { statusOf } from '../platform/http/problem.ts'
import { networkOf, type RateLimit } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'

/**
 * What stands before every address of the administrative plane, known or not: whoever is no administrator
 * learns nothing, not even which addresses exist.
 *
 * A body may take its time to arrive, and the caller may be an administrator no more by then: whoever was let in a
 * while ago is looked at again before anything is done.
 *
 * In this order: 429 per address, 403 for the shape of an API key, 401, 403 for the role, 429 per user.
 */
export interface AuthenticateDeps {
  authenticate: Authenticate
  addressLimit: RateLimit
  userLimit: RateLimit
  db: Db
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Whoever a valid token names, administrator or not; null before that is known. */
    user: User | null
    /** When that was found out, in milliseconds. */
    userSeenAt: number
  }
}

/** A request whose body came along is not asked twice. */
const seenForMs = 1_000

export function authenticateRequests(
  plane: HttpServer,
  { authenticate, addressLimit, userLimit, db }: AuthenticateDeps,
): void {
  const denials = new DenialCounter(db)
  plane.decorateRequest('user', null)
  plane.decorateRequest('userSeenAt', 0)
  const identify = async (request: FastifyRequest): Promise<User> => {
    request.userSeenAt = performance.now()
    request.user = await authenticate(request.headers.authorization)
    requireAdministrator(request.user)
    return request.user
  }
  plane.addHook('onRequest', async (request) => {
    await addressLimit(networkOf(request.ip))
    refuseApiKey(request.headers.authorization)
    const { id } = await identify(request)
    await userLimit(id)
  })
  plane.addHook('preHandler', async (request) => {
    if (performance.now() - request.userSeenAt > seenForMs) await identify(request)
  })
  plane.addHook('onError', async (request, _reply, error: unknown) => {
    if (!isDenial(request, error)) return
    try {
      await denials.count(denialOf(request, error))
    } catch (failure) {
      request.log.error({ err: failure }, 'a refusal could not be counted')
    }
  })
}

const changing = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/** Refused by the role, or by a rule of something that would have changed something. */
function isDenial(request: FastifyRequest, error: unknown): error is PosternError {
  if (request.user === null || !(error instanceof PosternError)) return false
  const status = statusOf[error.code]
  if (status === 403) return true
  // What does not exist refuses nobody.
  if (operationIdOf(request) === undefined) return false
  const { dry_run } = request.query as { dry_run?: boolean }
  return changing.has(request.method) && dry_run !== true && [404, 409, 412, 422].includes(status)
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
