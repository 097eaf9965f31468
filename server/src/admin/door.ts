import type { FastifyRequest } from 'fastify'
import { type Authenticate, refuseApiKey, requireAdministrator, type User } from '../core/access/bearer.ts'
import { countDenial } from '../core/audit/denials.ts'
import type { Db } from '../platform/db/db.ts'
import { PosternError } from '../platform/errors.ts'
import { statusOf } from '../platform/http/problem.ts'
import { networkOf, type RateLimit } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'

/**
 * What stands before every address of the administrative plane, known or not: whoever is no administrator
 * learns nothing, not even which addresses exist.
 *
 * In this order: 429 per address, 403 for the shape of an API key, 401, 403 for the role, 429 per user.
 */
export interface DoorDeps {
  authenticate: Authenticate
  addressLimit: RateLimit
  userLimit: RateLimit
  db: Db
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Whoever a valid token names, administrator or not; null before that is known. */
    user: User | null
  }
}

export function guardDoor(plane: HttpServer, { authenticate, addressLimit, userLimit, db }: DoorDeps): void {
  plane.decorateRequest('user', null)
  plane.addHook('onRequest', async (request) => {
    await addressLimit(networkOf(request.ip))
    const { authorization } = request.headers
    refuseApiKey(authorization)
    request.user = await authenticate(authorization)
    requireAdministrator(request.user)
    await userLimit(request.user.id)
  })
  plane.addHook('onError', async (request, _reply, error: unknown) => {
    if (!isDenial(request, error)) return
    try {
      await db.transaction((tx) => countDenial(tx, denialOf(request, error)))
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
  const { dry_run } = request.query as { dry_run?: boolean }
  return changing.has(request.method) && dry_run !== true && [404, 409, 412, 422].includes(status)
}

function denialOf(request: FastifyRequest, error: PosternError) {
  const { project_id } = request.params as { project_id?: unknown }
  return {
    actorId: request.user?.id ?? 0,
    operation: operationOf(request),
    error: error.code,
    projectId: typeof project_id === 'number' ? project_id : null,
    requestId: request.id,
  }
}

const operationOf = ({ routeOptions }: FastifyRequest): string =>
  (routeOptions.schema as { operationId?: string } | undefined)?.operationId ?? 'unknown'
