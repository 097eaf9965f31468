import assert from 'node:assert/strict'
import type { Static } from 'typebox'
import type { Domain } from '../core/domains/wire.ts'
import type { Endpoint } from '../core/endpoints/wire.ts'
import type { Member } from '../core/members/wire.ts'
import type { Plan, PlanConfig } from '../core/plans/wire.ts'
import type { Project } from '../core/projects/wire.ts'
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
      'insert into control.users (email, name, role, is_active) values ($1, $2, $3, $4) returning id',
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
    }: { name?: string; mta_provider?: string } = {},
  ): Promise<Static<typeof Domain>> {
    if (mta_provider === 'service') await allowServiceMta(projectId)
    return created(admin.post(`/projects/${projectId}/domains`, { name, mta_provider, reason: 'Needed' }))
  }

  const allowServiceMta = (projectId: number): Promise<Answer> =>
    admin.patch(`/projects/${projectId}`, { allow_service_mta: true, reason: 'Needed' })

  /** A domain with a catch-all route to the endpoint; made by SQL. Returns the route's id. */
  async function makeRoute(projectId: number, endpointId: number): Promise<number> {
    const domain = await makeDomain(projectId)
    const [row] = await database.query<{ id: string }>(
      `insert into control.routes (project_id, domain_id, match, action, endpoint_id)
       values ($1, $2, 'catch_all', 'endpoint', $3) returning id`,
      [projectId, domain.id, endpointId],
    )
    return Number(row?.id)
  }

  return { makeUser, makePlan, makeProject, makeMember, makeEndpoint, makeDomain, allowServiceMta, makeRoute }
}

export interface TestUser {
  id: number
  email: string
  name: string
  role: 'user' | 'admin'
  is_active: boolean
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

let made = 0

async function created<Resource>(request: Promise<Answer>): Promise<Resource> {
  const answer = await request
  assert.equal(answer.status, 201, answer.text)
  return answer.body as Resource
}
