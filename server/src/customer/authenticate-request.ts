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
 * What stands before every operation of the customers' plane: a member's access token or a project's API key, and what
 * it may do.
 *
 * In this order: 429 per address, 401, 403 (the key's address, its scope, its domain, the member's role), 429 per caller. Whoever
 * is not of the project is told 404, like everybody who asks for what does not exist, and at the same place: after
 * the request was found well formed. Until then nobody can tell one from the other.
 *
 * A body may take its time to arrive: whoever was let in a while ago is looked at again before anything is done.
 */
export interface AuthenticateDeps {
  authenticate: Authenticate
  /** Sees every project: to whose a key or a member belongs is known only afterwards. */
  everywhere: UnscopedDb
  keys: BatchedKeyLookup
  addressLimit: RateLimit
  callerLimits: { user: RateLimit; key: RateLimit }
  uses: LastUsed
}

/** What a route is, for the door. */
export interface Access {
  /** Null for a method that the path does not support. */
  operation: OperationId | null
  /** `in path`: as `project_id`. `of key`: the key's own, so that members have another path. `none`: about no project. */
  project: 'in path' | 'of key' | 'none'
  /** It takes bodies so large that nobody sends one for nothing: strangers are told so before it is read. */
  isLarge?: boolean
}

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
  }
  interface FastifyRequest {
    customer: Caller | UserCaller | Stranger | null
    /** When that was found out, in milliseconds. */
    customerAuthenticatedAt: number
  }
}

/** A request whose body came along is not asked twice. */
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
  // After the answer: nobody waits for it.
  plane.addHook('onResponse', async ({ customer }) => {
    if (customer?.kind === 'key') deps.uses.record(customer.key)
  })
}

async function callerOf(
  request: FastifyRequest,
  { authenticate, everywhere, keys }: AuthenticateDeps,
): Promise<Caller | UserCaller | Stranger> {
  const { operation, project } = request.routeOptions.config.access ?? unguarded()
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
  if (project === 'of key') throw membersElsewhere()
  const projectId = projectIn(request)
  const role =
    projectId === undefined ? undefined : await everywhere.readOne((tx) => memberRole(tx, projectId, user.id))
  if (projectId === undefined || role === undefined) return { kind: 'stranger', of: { user } }
  if (operation !== null) requireRole(operation, role)
  return { kind: 'member', user, role, projectId }
}

/** Undefined when it is none; its schema refuses it later, in its turn. */
function projectIn({ params }: FastifyRequest): number | undefined {
  const { project_id: text } = params as { project_id?: string | number }
  const id = Number(text)
  return /^(0|[1-9]\d{0,15})$/.test(String(text)) && Number.isSafeInteger(id) ? id : undefined
}

const membersElsewhere = (): PosternError =>
  new PosternError(
    'insufficient_role',
    'This path is for API keys, which are of one project. As a member, name it: /v1/projects/{project_id}/….',
  )

function unguarded(): never {
  throw new Error('a route of the customers has no word on who may call it')
}
