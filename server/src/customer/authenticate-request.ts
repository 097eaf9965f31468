import type { FastifyRequest } from 'fastify'
import { type Authenticate, apiKeyOf } from '../core/control/access/verify-access-token.ts'
import { authenticateApiKey, invalidKey } from '../core/control/api-keys/authenticate.ts'
import type { BatchedKeyLookup } from '../core/control/api-keys/batched-key-lookup.ts'
import type { LastUsed } from '../core/control/api-keys/last-used.ts'
import { memberRole } from '../core/control/members/members.ts'
import { missingProject } from '../core/control/projects/projects.ts'
import type { UnscopedDb } from '../platform/db/db.ts'
import { PosternError } from '../platform/errors.ts'
import { networkOf, type RateLimit, setRateLimitHeaders } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { actorOf, type Caller, type Stranger, type UserCaller } from './caller.ts'
import { requireBinding } from './domain-bindings.ts'
import { type OperationId, requireRole } from './roles.ts'
import { requireScope } from './scopes.ts'

/**
 * Authenticates and authorises every request on the customer plane with a member's access token or a project's API key.
 *
 * Checks in order: 429 per address, 401, 403 (the key's allowed addresses, its scope, its domain, the member's role), 429
 * per caller. A caller without access to the project gets the same 404 as for a project that does not exist, and gets it at
 * the same point: after the request is validated. The two cases are therefore indistinguishable.
 *
 * A slow body can arrive long after the headers, so the caller is authenticated again before the operation runs.
 */
export interface AuthenticateDeps {
  authenticate: Authenticate
  /** Reads across projects, because a key's or member's project is not known before the lookup. */
  everywhere: UnscopedDb
  keys: BatchedKeyLookup
  addressLimit: RateLimit
  callerLimits: { user: RateLimit; key: RateLimit }
  uses: LastUsed
}

/** The access configuration of a route. */
export interface Access {
  /** Null for a method that the path does not support. */
  operation: OperationId | null
  /** `in path`: specified by `project_id`. `of key`: the API key's project; members use another path. `none`: no project. */
  project: 'in path' | 'of key' | 'none'
  /** Accepts large bodies. Callers without access are rejected before the body is read. */
  isLarge?: boolean
}

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
  }
  interface FastifyRequest {
    customer: Caller | UserCaller | Stranger | null
    /** In milliseconds, from `performance.now()`. */
    customerAuthenticatedAt: number
  }
}

/** A request whose body arrived with its headers is authenticated once. */
const reauthenticateAfterMs = 1_000

export function authenticateRequests(plane: HttpServer, deps: AuthenticateDeps): void {
  plane.decorateRequest('customer', null)
  plane.decorateRequest('customerAuthenticatedAt', 0)
  const identify = async (request: FastifyRequest) => {
    request.customerAuthenticatedAt = performance.now()
    request.customer = await callerOf(request, deps)
    if ('projectId' in request.customer) request.projectId = request.customer.projectId
    return request.customer
  }
  plane.addHook('onRequest', async (request, reply) => {
    await deps.addressLimit(networkOf(request.ip))
    const caller = await identify(request)
    const who = caller.kind === 'stranger' ? caller.of : caller
    setRateLimitHeaders(reply, await deps.callerLimits['key' in who ? 'key' : 'user'](actorOf(caller)))
    const named = projectIn(request)
    if (caller.kind === 'stranger' && request.routeOptions.config.access?.isLarge && named !== undefined) {
      throw missingProject(named)
    }
  })
  plane.addHook('preHandler', async (request) => {
    if (performance.now() - request.customerAuthenticatedAt > reauthenticateAfterMs) await identify(request)
  })
  // Runs after the response is sent, so that the response is not delayed.
  plane.addHook('onResponse', async ({ customer }) => {
    if (customer?.kind === 'key') deps.uses.record(customer.key)
  })
}

async function callerOf(
  request: FastifyRequest,
  { authenticate, everywhere, keys }: AuthenticateDeps,
): Promise<Caller | UserCaller | Stranger> {
  const { operation, project } = request.routeOptions.config.access ?? missingAccess()
  const { authorization } = request.headers
  const secret = apiKeyOf(authorization)
  if (secret !== undefined) {
    const key = await authenticateApiKey((hash) => keys.find(hash), secret, request.ip)
    if (operation !== null) {
      requireScope(operation, key.scopes)
      requireBinding(operation, key)
    }
    const projectId = project === 'in path' ? projectIn(request) : key.project_id
    return projectId === key.project_id ? { kind: 'key', key, projectId } : { kind: 'stranger', of: { key } }
  }
  if (project === 'of key' && authorization === undefined) throw invalidKey()
  const user = await authenticate(authorization)
  if (project === 'none') return { kind: 'user', user }
  if (project === 'of key') throw keysOnly()
  const projectId = projectIn(request)
  const role =
    projectId === undefined ? undefined : await everywhere.readOne((tx) => memberRole(tx, projectId, user.id))
  if (projectId === undefined || role === undefined) return { kind: 'stranger', of: { user } }
  if (operation !== null) requireRole(operation, role)
  return { kind: 'member', user, role, projectId }
}

/** Undefined if the id is invalid. The schema rejects it later. */
function projectIn({ params }: FastifyRequest): number | undefined {
  const { project_id: text } = params as { project_id?: string | number }
  const id = Number(text)
  return /^(0|[1-9]\d{0,15})$/.test(String(text)) && Number.isSafeInteger(id) ? id : undefined
}

const keysOnly = (): PosternError =>
  new PosternError(
    'insufficient_role',
    'This path is for API keys, which belong to one project. As a member, use /v1/projects/{project_id}/….',
  )

function missingAccess(): never {
  throw new Error('a route of the customers has no access configuration')
}
