import assert from 'node:assert/strict'
import { fixtures } from '../fixtures/fixtures.ts'
import type { Client } from '../harness/client.ts'
import type { TestDatabase } from '../harness/database.ts'
import { expectedAdminOperations } from './admin-operations.ts'
import {
  auditScenarios,
  bulkScenarios,
  planScenarios,
  policyScenarios,
  userScenarios,
} from './global-mutations.ts'
import { apiKeyScenarios, endpointScenarios, mailScenarios, routeScenarios } from './project-mutations.ts'
import type { MutationRequest, Scenario } from './scenario.ts'
import { suppressionScenarios } from './suppression-mutations.ts'

export type { MutationRequest }

export const reason = 'Requested by the customer, ticket 4711'

/**
 * Valid requests for every administrative mutation, keyed by operation id: one for each effect that it can have. Tests
 * that apply to all mutations run with each of these requests. A mutation that needs no body has a default scenario and
 * does not have to be listed here.
 */
export function mutationScenarios(database: TestDatabase, admin: Client): Record<string, Scenario[]> {
  const make = fixtures(database, admin)
  const listed: Scenarios = {
    ...projectScenarios(make, admin),
    ...memberScenarios(make),
    ...domainScenarios(make),
    ...endpointScenarios(make, database),
    ...routeScenarios(make),
    ...apiKeyScenarios(make, database),
    ...mailScenarios(make, admin, database),
    ...interventionScenarios(make),
    ...noteScenarios(make),
    ...suppressionScenarios(make, database),
    ...planScenarios(make),
    ...policyScenarios(make),
    ...bulkScenarios(make, database),
    ...userScenarios(make, database),
    ...auditScenarios(make, admin),
  }
  const mutations = Object.entries(expectedAdminOperations).filter(
    ([, { route, isRead }]) => !route.startsWith('GET') && !isRead,
  )
  for (const id of Object.keys(listed)) assert.ok(id in expectedAdminOperations, id)
  return Object.fromEntries(
    mutations.map(([id, { route, reason }]) => {
      const scenarios = listed[id] ?? [withoutBody(make, route)]
      return [
        id,
        reason ? scenarios.map((scenario) => ({ ...scenario, needsReason: true as const })) : scenarios,
      ]
    }),
  )
}

/** A request without a body, for a new resource in a new project. */
function withoutBody(make: Fixtures, route: string): Scenario {
  const [, path = ''] = route.split(' /v1/admin')
  const [, noun = ''] = /([^/]+)\/:id/.exec(path) ?? []
  const makeOne: Record<string, (projectId: number) => Promise<{ id: number }>> = {
    members: make.makeMember,
    domains: (projectId) => make.makeDomain(projectId, { mta_provider: 'service' }),
    endpoints: async (projectId) => (await make.makeEndpoint(projectId)).resource,
    routing: make.makeRoute,
    'api-keys': async (projectId) => (await make.makeApiKey(projectId)).resource,
    interventions: make.makeIntervention,
    discards: make.makeDiscard,
    reversals: make.makeReversal,
    notes: make.makeNote,
    plans: () => make.makePlan(),
    policies: () => make.makePolicy(),
    users: () => make.makeUser(),
  }
  return {
    what: 'sends no body',
    async prepare() {
      const project = await make.makeProject()
      await make.allowServiceMta(project.id)
      const of = path.replace(':project_id', String(project.id))
      if (noun === '') return { path: of, body: {} }
      const { id } = (await makeOne[noun]?.(project.id)) ?? assert.fail(`no fixture creates ${noun}`)
      return { path: of.replace(':id', String(id)), body: {} }
    },
  }
}

type Fixtures = ReturnType<typeof fixtures>
type Scenarios = Record<string, Scenario[]>

function interventionScenarios(make: Fixtures): Scenarios {
  const start = (body: Record<string, unknown>) => async () => ({
    path: `/projects/${(await make.makeProject()).id}/interventions`,
    body,
  })
  const there = async (changes: Record<string, unknown>, body: Record<string, unknown>, below = '') => {
    const { id: projectId } = await make.makeProject()
    const { id } = await make.makeIntervention(projectId, changes)
    return { path: `/projects/${projectId}/interventions/${id}${below}`, body }
  }
  const pace = { kind: 'pace', pace_per_hour: 500 }
  return {
    'interventions.create': [
      { what: 'warns', prepare: start({ kind: 'warn', public_note: 'Clean up your list.' }) },
      { what: 'paces', prepare: start(pace) },
      { what: 'holds', prepare: start({ kind: 'hold' }) },
      { what: 'locks', prepare: start({ kind: 'lock' }) },
    ],
    'interventions.edit': [
      {
        what: 'changes the pace',
        prepare: () => there(pace, { pace_per_hour: 1, public_note: 'Slower.', expires_at: null }),
      },
      {
        what: 'changes nothing',
        changesNothing: true,
        prepare: () => there(pace, { pace_per_hour: 500, public_note: null, expires_at: null }),
      },
    ],
    'interventions.end': [
      { what: 'ends a warning', prepare: () => there({ kind: 'warn' }, {}, '/end') },
      { what: 'unlocks', prepare: () => there({ kind: 'lock' }, {}, '/end') },
    ],
  }
}

function noteScenarios(make: Fixtures): Scenarios {
  const there = async (change: (text: string) => string) => {
    const { id: projectId } = await make.makeProject()
    const { id, text } = await make.makeNote(projectId)
    return { path: `/projects/${projectId}/notes/${id}`, body: { text: change(text) } }
  }
  return {
    'notes.create': [
      {
        what: 'adds a note',
        prepare: async () => ({
          path: `/projects/${(await make.makeProject()).id}/notes`,
          body: { text: 'Ada from billing called.' },
        }),
      },
    ],
    'notes.edit': [
      { what: 'changes the text', prepare: () => there((text) => `${text}, changed`) },
      { what: 'changes nothing', changesNothing: true, prepare: () => there((text) => text) },
    ],
  }
}

function projectScenarios(make: Fixtures, admin: Client): Scenarios {
  const edit = (body: Record<string, unknown> | (() => Promise<Record<string, unknown>>)) => async () => {
    const { id } = await make.makeProject()
    return { path: `/projects/${id}`, body: typeof body === 'function' ? await body() : body }
  }
  const withOverrides = async () => {
    const { id } = await make.makeProject()
    await admin.patch(`/projects/${id}`, {
      is_locked: true,
      allow_service_mta: true,
      admin_plan_id: (await make.makePlan()).id,
      admin_subscription_status: 'active',
      reason,
    })
    return id
  }
  return {
    'projects.create': [
      {
        what: 'creates a project',
        prepare: async () => ({
          path: '/projects',
          body: {
            name: 'Acme',
            user_id: (await make.makeUser()).id,
            plan_id: (await make.makePlan()).id,
          },
        }),
      },
    ],
    'projects.edit': [
      { what: 'renames it', prepare: edit({ name: 'Acme & Sons' }) },
      {
        what: 'moves it to another plan',
        prepare: edit(async () => ({ plan_id: (await make.makePlan()).id })),
      },
      { what: 'locks it', needsReason: true, prepare: edit({ is_locked: true }) },
      {
        what: 'unlocks it and clears every override',
        needsReason: true,
        prepare: async () => ({
          path: `/projects/${await withOverrides()}`,
          body: {
            is_locked: false,
            allow_service_mta: false,
            admin_plan_id: null,
            admin_subscription_status: null,
          },
        }),
      },
      { what: 'sets its score', needsReason: true, prepare: edit({ reputation_score: 35 }) },
      {
        what: 'overrides its plan',
        needsReason: true,
        prepare: edit(async () => ({ admin_plan_id: (await make.makePlan()).id })),
      },
      {
        what: 'overrides its subscription',
        needsReason: true,
        prepare: edit({ admin_subscription_status: 'paused' }),
      },
      {
        what: "allows the operator's MTAs",
        needsReason: true,
        prepare: edit({ allow_service_mta: true, name: 'Acme' }),
      },
      ...transferScenarios(make),
      {
        what: 'changes nothing',
        changesNothing: true,
        prepare: async () => ({
          path: `/projects/${await withOverrides()}`,
          body: { is_locked: true, allow_service_mta: true, admin_subscription_status: 'active' },
        }),
      },
    ],
    'projects.set-billing': billingScenarios(make, admin),
  }
}

function transferScenarios(make: Fixtures): Scenario[] {
  return [
    {
      what: 'transfers it to a user outside the project',
      needsReason: true,
      prepare: async () => ({
        path: `/projects/${(await make.makeProject()).id}`,
        body: { user_id: (await make.makeUser()).id },
      }),
    },
    {
      what: 'transfers it to a member',
      needsReason: true,
      async prepare() {
        const project = await make.makeProject()
        const user = await make.makeUser()
        await make.makeMember(project.id, { email: user.email })
        return { path: `/projects/${project.id}`, body: { user_id: user.id } }
      },
    },
    {
      what: 'transfers it to an invited user',
      needsReason: true,
      async prepare() {
        const project = await make.makeProject()
        const { email } = await make.makeMember(project.id)
        return { path: `/projects/${project.id}`, body: { user_id: (await make.makeUser({ email })).id } }
      },
    },
  ]
}

function billingScenarios(make: Fixtures, admin: Client): Scenario[] {
  const billed = {
    billing_subscription_id: 'sub_9x2',
    billing_subscription_status: 'canceled',
    billing_product_id: 'prod_business',
  }
  const unbilled = {
    billing_subscription_id: null,
    billing_subscription_status: null,
    billing_product_id: null,
  }
  const after = async (state: object, body: Record<string, unknown>) => {
    const path = `/projects/${(await make.makeProject()).id}/billing`
    await admin.put(path, state)
    return { path, body }
  }
  return [
    { what: 'sets the subscription', prepare: () => after(unbilled, billed) },
    { what: 'removes the subscription', prepare: () => after(billed, unbilled) },
    { what: 'changes nothing', changesNothing: true, prepare: () => after(billed, billed) },
  ]
}

function memberScenarios(make: Fixtures): Scenarios {
  const add = async (max_users: number, email: string) => {
    const { id } = await make.makeProject({ plan_id: (await make.makePlan({ max_users })).id })
    return { path: `/projects/${id}/members`, body: { email, role: 'developer' } }
  }
  const withMember = async (email: string | undefined, body: Record<string, unknown>) => {
    const project = await make.makeProject()
    const member = await make.makeMember(project.id, email === undefined ? {} : { email })
    return { path: `/projects/${project.id}/members/${member.id}`, body }
  }
  return {
    'members.create': [
      { what: 'invites an address', prepare: () => add(2, 'grace@example.net') },
      { what: 'adds a user', prepare: async () => add(2, (await make.makeUser()).email) },
      {
        what: "exceeds the plan's limit",
        needsReason: true,
        prepare: () => add(1, 'grace@example.net'),
      },
    ],
    'members.edit': [
      { what: 'changes the role', prepare: () => withMember(undefined, { role: 'viewer' }) },
      {
        what: 'changes nothing',
        changesNothing: true,
        prepare: () => withMember(undefined, { role: 'developer' }),
      },
    ],
    'members.delete': [
      { what: 'withdraws an invitation', prepare: () => withMember(undefined, {}) },
      {
        what: 'removes a member',
        prepare: async () => withMember((await make.makeUser()).email, {}),
      },
    ],
  }
}

function domainScenarios(make: Fixtures): Scenarios {
  const add = async (max_domains: number, mta_provider: string) => {
    const { id } = await make.makeProject({ plan_id: (await make.makePlan({ max_domains })).id })
    if (mta_provider === 'service') await make.allowServiceMta(id)
    return { path: `/projects/${id}/domains`, body: { name: 'mail.example.com', mta_provider } }
  }
  const withDomain = async (
    mta_provider: 'service' | 'ses',
    below: string,
    body: Record<string, unknown>,
  ) => {
    const project = await make.makeProject()
    await make.allowServiceMta(project.id)
    const domain = await make.makeDomain(project.id, { name: 'mail.example.com', mta_provider })
    return { path: `/projects/${project.id}/domains/${domain.id}${below}`, body }
  }
  return {
    'domains.verify': [
      { what: 'checks a domain of SES', prepare: () => withDomain('ses', '/verify', {}) },
      {
        what: "checks a domain of the operator's MTAs",
        prepare: () => withDomain('service', '/verify', {}),
      },
    ],
    'domains.create': [
      { what: 'registers it with SES', prepare: () => add(1, 'ses') },
      { what: "registers it with the operator's MTAs", prepare: () => add(1, 'service') },
      { what: "exceeds the plan's limit", needsReason: true, prepare: () => add(0, 'ses') },
    ],
    'domains.edit': [
      { what: 'renames it', prepare: () => withDomain('ses', '', { name: 'mail.example.net' }) },
      {
        what: 'renames it with its address routes',
        async prepare() {
          const project = await make.makeProject()
          const domain = await make.makeDomain(project.id, { name: 'mail.example.com' })
          const at = (local: string) => ({
            domain_id: domain.id,
            match: 'address' as const,
            address: `${local}@mail.example.com`,
          })
          await make.makeRoute(project.id, at('info'))
          await make.makeRoute(project.id, at('sales'))
          return {
            path: `/projects/${project.id}/domains/${domain.id}`,
            body: { name: 'mail.example.net', preserve_local_parts: true },
          }
        },
      },
      { what: 'changes the provider', prepare: () => withDomain('ses', '', { mta_provider: 'service' }) },
      {
        what: 'renames a verified domain',
        async prepare() {
          const project = await make.makeProject()
          const domain = await make.makeDomain(project.id, { status: 'verified' })
          return {
            path: `/projects/${project.id}/domains/${domain.id}`,
            body: { name: `renamed-${domain.name}` },
          }
        },
      },
      {
        what: 'registers it again without a change',
        prepare: () => withDomain('ses', '', { name: 'mail.example.com', mta_provider: 'ses' }),
      },
    ],
  }
}
