import assert from 'node:assert/strict'
import type { Static } from 'typebox'
import type { ApiKey, ApiKeyConfig } from '../core/api-keys/wire.ts'
import type { Domain } from '../core/domains/wire.ts'
import type { Endpoint } from '../core/endpoints/wire.ts'
import type { Member } from '../core/members/wire.ts'
import type { Plan, PlanConfig } from '../core/plans/wire.ts'
import type { Project } from '../core/projects/wire.ts'
import type { Route, RouteConfig } from '../core/routes/wire.ts'
import type { Answer, Client } from './client.ts'
import type { TestDatabase } from './database.ts'

/**
 * What a test needs to be there: made through the API where an operation makes it, by SQL where none does.
 * Everything is new at each call, with names and addresses of its own.
 */
export function fixtures(database: TestDatabase, admin: Client) {
  /** A person with an account, but without a password: made by SQL. */
  async function makeUser(changes: Partial<Omit<TestUser, 'id'>> = {}): Promise<TestUser> {
    const number = ++made
    const user = {
      email: `person${number}@example.org`,
      name: `Person No. ${number}`,
      role: 'user' as const,
      is_active: true,
      ...changes,
    }
    const [row] = await database.query<{ id: string }>(
      'insert into control.users (email, name, role, is_active, email_verified) values ($1, $2, $3, $4, true) returning id',
      [user.email, user.name, user.role, user.is_active],
    )
    return { id: Number(row?.id), ...user }
  }

  const makePlan = (changes: Partial<PlanConfig> = {}): Promise<Static<typeof Plan>> =>
    created(admin.post('/plans', { ...planConfiguration, name: `Plan ${++made}`, ...changes }))

  /** Of a new user and on a new plan, unless told otherwise. */
  async function makeProject(
    changes: { name?: string; user_id?: number; plan_id?: number; reason?: string } = {},
  ): Promise<Static<typeof Project>> {
    return created(
      admin.post('/projects', {
        name: changes.name ?? `Project ${++made}`,
        user_id: changes.user_id ?? (await makeUser()).id,
        plan_id: changes.plan_id ?? (await makePlan()).id,
        ...(changes.reason === undefined ? {} : { reason: changes.reason }),
      }),
    )
  }

  /** Invited, unless the address is a user's. */
  const makeMember = (
    projectId: number,
    changes: { email?: string; role?: string; reason?: string } = {},
  ): Promise<Static<typeof Member>> =>
    created(
      admin.post(`/projects/${projectId}/members`, {
        email: `guest${++made}@example.org`,
        role: 'developer',
        ...changes,
      }),
    )

  const makeEndpoint = (
    projectId: number,
    changes: Partial<typeof endpointConfiguration> = {},
  ): Promise<{ resource: Static<typeof Endpoint>; secret: string }> =>
    created(admin.post(`/projects/${projectId}/endpoints`, { ...endpointConfiguration, ...changes }))

  /** With SES, unless told otherwise; a project that may not use the provider is allowed it first. */
  async function makeDomain(
    projectId: number,
    {
      name = `mail${++made}.example.org`,
      mta_provider = 'ses',
      status = 'pending',
    }: Partial<TestDomain> = {},
  ): Promise<Static<typeof Domain>> {
    if (mta_provider === 'service') await allowServiceMta(projectId)
    const domain = await created<Static<typeof Domain>>(
      admin.post(`/projects/${projectId}/domains`, { name, mta_provider, reason: 'Needed' }),
    )
    if (status === 'pending') return domain
    // As a look at the DNS would leave it.
    await database.query(
      `update control.domains set status = $2, verified_at = case when $2 = 'verified' then postern.now() end
        where id = $1`,
      [domain.id, status],
    )
    return { ...domain, status }
  }

  const allowServiceMta = (projectId: number): Promise<Answer> =>
    admin.patch(`/projects/${projectId}`, { allow_service_mta: true, reason: 'Needed' })

  /** A catch-all that refuses mail, of a new domain, unless told otherwise. */
  async function makeRoute(
    projectId: number,
    changes: Partial<RouteConfig> = {},
  ): Promise<Static<typeof Route>> {
    return created(
      admin.post(`/projects/${projectId}/routing`, {
        ...routeConfiguration,
        domain_id: changes.domain_id ?? (await makeDomain(projectId)).id,
        ...changes,
      }),
    )
  }

  /** The route of an endpoint's inbound mail. */
  const makeRouteTo = (projectId: number, endpointId: number): Promise<Static<typeof Route>> =>
    makeRoute(projectId, { action: 'endpoint', endpoint_id: endpointId })

  const makeApiKey = (
    projectId: number,
    changes: Partial<ApiKeyConfig> & { mode?: 'live' | 'test' } = {},
  ): Promise<{ resource: Static<typeof ApiKey>; secret: string }> =>
    created(
      admin.post(`/projects/${projectId}/api-keys`, { mode: 'live', ...apiKeyConfiguration, ...changes }),
    )

  return {
    makeUser,
    makePlan,
    makeProject,
    makeMember,
    makeEndpoint,
    makeDomain,
    allowServiceMta,
    makeRoute,
    makeRouteTo,
    makeApiKey,
  }
}

export interface TestUser {
  id: number
  email: string
  name: string
  role: 'user' | 'admin'
  is_active: boolean
}

interface TestDomain {
  name: string
  status: 'pending' | 'verified' | 'failed'
  mta_provider: 'service' | 'ses'
}

/** A plan that no test meets the limits of by chance. */
export const planConfiguration: PlanConfig = {
  name: 'Plan',
  description: 'For tests.',
  support_level: 'email',
  max_domains: 1000,
  max_users: 1000,
  max_mails_per_day: 10_000,
  max_mails_per_month: 100_000,
  billing_product_id: null,
  price: 10,
  is_active: true,
}

export const endpointConfiguration = {
  name: 'Events',
  url: 'https://hooks.example.com/events',
  events: ['message.delivered', 'message.bounced'],
  is_active: true,
}

/** But for its domain. */
export const routeConfiguration = {
  match: 'catch_all',
  address: null,
  action: 'reject',
  endpoint_id: null,
  forward_to: null,
  is_active: true,
} as const

export const apiKeyConfiguration: ApiKeyConfig = {
  name: 'Web shop',
  scopes: ['messages:send', 'messages:read'],
  domain_id: null,
  allowed_ips: ['192.0.2.0/24', '2001:db8::7'],
  expires_at: null,
  is_active: true,
}

let made = 0

async function created<Resource>(request: Promise<Answer>): Promise<Resource> {
  const answer = await request
  assert.equal(answer.status, 201, answer.text)
  return answer.body as Resource
}
