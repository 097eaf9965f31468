import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { expectedAdminOperations } from '../../testing/expectations/admin-operations.ts'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { mutationScenarios, reason } from '../../testing/expectations/mutations.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import {
  apiKeyConfiguration,
  endpointConfiguration,
  fixtures,
  planConfiguration,
  routeConfiguration,
} from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { watchRows } from '../../testing/harness/dump.ts'
import { isMutation, type Mutation } from '../operation.ts'
import { adminOperations } from '../routes.ts'
import { methodOf } from '../schema.ts'

/** The audit reason: where it is required, where it is optional, its format, and how it is stored. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeUser, makePlan, makeProject, makeMember, makeEndpoint, makeDomain, makeRoute, makeApiKey } =
  fixtures(database, admin)
const scenarios = mutationScenarios(database, admin)
const mutations = adminOperations.filter(isMutation)

const plans = [await makePlan(), await makePlan()].map(({ id }) => id)
const heirs = [await makeUser(), await makeUser()].map(({ id }) => id)

type Body = Record<string, unknown>

async function assertReasonRequired(ask: () => Promise<Answer>): Promise<Answer> {
  const rows = await watchRows(database, { except: ['control.denials'] })
  const answer = await ask()
  assertProblem(answer, 422, 'reason_required')
  assert.match(answer.body.message, /"reason"/)
  await rows.assertUntouched()
  return answer
}

async function assertDone(answer: Answer, kept: string | null): Promise<void> {
  assert.ok(answer.status < 300, answer.text)
  const row = (await auditRowOf(database, answer)) ?? assert.fail('there is no audit row')
  assert.equal(row.reason, kept)
}

describe('a reason is required', () => {
  const isAlwaysRequired = ({ id }: Mutation) => expectedAdminOperations[id]?.reason === 'always'
  // These need a body as well; their tests follow.
  const withBody = [
    'users.edit',
    'bulk.create',
    'interventions.create',
    'interventions.edit',
    'policies.create',
    'policies.edit',
    'queue.release',
    'queue.discard',
    'suppressions.create',
    'suppressions.import',
    'platform-suppressions.create',
    'platform-suppressions.import',
  ]
  for (const operation of mutations.filter(isAlwaysRequired).filter(({ id }) => !withBody.includes(id))) {
    test(`by ${operation.id}`, async () => {
      const { path } = (await scenarios[operation.id]?.[0]?.prepare()) ?? assert.fail()
      await assertReasonRequired(() => admin.request(methodOf(operation), path, {}))
      await assertReasonRequired(() => admin.request(methodOf(operation), path))
      await assertDone(await admin.request(methodOf(operation), path, { reason }), reason)
    })
  }

  test('by users.edit', async () => {
    const { id } = await makeUser()
    for (const body of [{ role: 'admin' }, { is_active: false }, { end_sessions: true }]) {
      await assertReasonRequired(() => admin.patch(`/users/${id}`, body))
      await assertDone(await admin.patch(`/users/${id}`, { ...body, reason }), reason)
    }
  })

  for (const operation of mutations.filter(({ id }) =>
    /^(interventions|policies|queue|bulk|suppressions|platform-suppressions)\./.test(id),
  )) {
    test(`by ${operation.id}, also with a complete body`, async () => {
      const { path, body } = (await scenarios[operation.id]?.[0]?.prepare()) ?? assert.fail()
      await assertReasonRequired(() => admin.request(methodOf(operation), path, body))
      await assertDone(await admin.request(methodOf(operation), path, { ...body, reason }), reason)
    })
  }

  /** Each step changes the result of the previous one. */
  const steps: Record<string, [what: string, value: unknown][]> = {
    is_locked: [
      ['locking', true],
      ['unlocking', false],
    ],
    reputation_score: [
      ['lowering the score', 12],
      ['raising the score', 88],
    ],
    admin_plan_id: [
      ['overriding the billed plan', plans[0]],
      ['changing the plan override', plans[1]],
      ['clearing it', null],
    ],
    admin_subscription_status: [
      ['overriding the subscription status', 'active'],
      ['changing the status override', 'canceled'],
      ['clearing it', null],
    ],
    allow_service_mta: [
      ["allowing the operator's MTAs", true],
      ['disallowing them', false],
    ],
    user_id: [
      ['transferring the project', heirs[0]],
      ['transferring it again', heirs[1]],
    ],
  }
  for (const [field, values] of Object.entries(steps)) {
    test(`by projects.edit for ${values.map(([what]) => what).join(', ')}`, async () => {
      const path = `/projects/${(await makeProject()).id}`
      for (const [, value] of values) {
        const refused = await assertReasonRequired(() => admin.patch(path, { [field]: value }))
        assert.match(refused.body.message, new RegExp(`"${field}"`))
        const answer = await admin.patch(path, { [field]: value, reason })
        await assertDone(answer, reason)
        assert.equal(answer.body[field], value)
      }
    })
  }

  test('by projects.edit for the fields that change, and only those are named', async () => {
    const path = `/projects/${(await makeProject()).id}`
    const body = { name: 'Renamed', is_locked: true, allow_service_mta: false, reputation_score: 7 }
    const { body: problem } = await assertReasonRequired(() => admin.patch(path, body))
    const named = [...problem.message.matchAll(/"(\w+)"/g)].map(([, field]: string[]) => field)
    assert.deepEqual(named.sort(), ['is_locked', 'reason', 'reputation_score'])
  })
})

describe('a reason is not required', () => {
  const optional: Record<string, () => Promise<[method: string, path: string, body: Body]>> = {
    'to rename a project': async () => ['PATCH', `/projects/${(await makeProject()).id}`, { name: 'New' }],
    'to assign another plan to a project': async () => [
      'PATCH',
      `/projects/${(await makeProject()).id}`,
      { plan_id: (await makePlan()).id },
    ],
    'to rename a project with unchanged lock and overrides in the body': async () => {
      const { id, user_id, is_locked, reputation_score, ...rest } = await makeProject()
      const { admin_plan_id, admin_subscription_status, allow_service_mta } = rest
      const overrides = { admin_plan_id, admin_subscription_status, allow_service_mta }
      return ['PATCH', `/projects/${id}`, { name: 'New', user_id, is_locked, reputation_score, ...overrides }]
    },
    "to set a project's billing": async () => [
      'PUT',
      `/projects/${(await makeProject()).id}/billing`,
      {
        billing_subscription_id: 'sub_1',
        billing_subscription_status: 'canceled',
        billing_product_id: null,
      },
    ],
    'to create a project': async () => [
      'POST',
      '/projects',
      { name: 'New', user_id: (await makeUser()).id, plan_id: (await makePlan()).id },
    ],
    'to create a plan': async () => ['POST', '/plans', { ...planConfiguration }],
    'to invite a member within the limit': async () => [
      'POST',
      `/projects/${(await makeProject()).id}/members`,
      { email: 'grace@example.net', role: 'viewer' },
    ],
    "to change a member's role": async () => {
      const { id, project_id } = await makeMember((await makeProject()).id)
      return ['PATCH', `/projects/${project_id}/members/${id}`, { role: 'viewer' }]
    },
    'to create an endpoint': async () => [
      'POST',
      `/projects/${(await makeProject()).id}/endpoints`,
      { ...endpointConfiguration },
    ],
    'to create a route': async () => {
      const { id } = await makeProject()
      const body = { ...routeConfiguration, domain_id: (await makeDomain(id)).id }
      return ['POST', `/projects/${id}/routing`, body]
    },
    'to edit a route': async () => {
      const { id, project_id, domain_id } = await makeRoute((await makeProject()).id)
      return [
        'PATCH',
        `/projects/${project_id}/routing/${id}`,
        { ...routeConfiguration, domain_id, action: 'drop' },
      ]
    },
    'to create an API key': async () => [
      'POST',
      `/projects/${(await makeProject()).id}/api-keys`,
      { mode: 'live', ...apiKeyConfiguration },
    ],
    'to edit an API key': async () => {
      const { resource } = await makeApiKey((await makeProject()).id)
      const path = `/projects/${resource.project_id}/api-keys/${resource.id}`
      return ['PATCH', path, { ...apiKeyConfiguration, is_active: false }]
    },
    'to edit an endpoint': async () => {
      const { resource } = await makeEndpoint((await makeProject()).id)
      const path = `/projects/${resource.project_id}/endpoints/${resource.id}`
      return ['PATCH', path, { ...endpointConfiguration, is_active: false }]
    },
  }
  const planChanges: Body = {
    name: 'New',
    description: 'New.',
    support_level: 'priority',
    max_domains: 1,
    max_users: 1,
    max_mails_per_day: 1,
    max_mails_per_month: 1,
    billing_product_id: 'prod_1',
    price: 1,
    is_active: false,
  }
  for (const [field, value] of Object.entries(planChanges)) {
    optional[`to change "${field}" of a plan`] = async () => [
      'PATCH',
      `/plans/${(await makePlan()).id}`,
      { [field]: value },
    ]
  }

  for (const [what, prepare] of Object.entries(optional)) {
    test(`${what}, but is recorded if provided`, async () => {
      const [method, path, body] = await prepare()
      await assertDone(await admin.request(method, path, body), null)
      const [, other, again] = await prepare()
      await assertDone(await admin.request(method, other, { ...again, reason }), reason)
    })
  }

  test('for an unchanged field of a project that was changed before', async () => {
    const path = `/projects/${(await makeProject()).id}`
    await admin.patch(path, { is_locked: true, admin_subscription_status: 'paused', reason })
    const body = { is_locked: true, admin_subscription_status: 'paused' }
    await assertDone(await admin.patch(path, { ...body, name: 'New' }), null)
  })
})

describe('the text of a reason', () => {
  const lock = async (given: string): Promise<Answer> =>
    admin.patch(`/projects/${(await makeProject()).id}`, { is_locked: true, reason: given })

  const kept: Record<string, [given: string, kept: string]> = {
    'one character': ['x', 'x'],
    '500 characters': ['x'.repeat(500), 'x'.repeat(500)],
    '500 characters beyond the basic plane': ['😀'.repeat(500), '😀'.repeat(500)],
    '500 characters between spaces, which are trimmed': [`  ${'x'.repeat(500)}  `, 'x'.repeat(500)],
    'a line with a trailing line break, which is trimmed': ['Asked for\r\n', 'Asked for'],
    'blanks inside': ['Asked  for', 'Asked  for'],
    'any language and quotation mark': [`Käufer „Ünal" — 顧客's <b>`, `Käufer „Ünal" — 顧客's <b>`],
  }
  for (const [what, [given, stored]] of Object.entries(kept)) {
    test(`may be ${what}`, async () => {
      await assertDone(await lock(given), stored)
    })
  }

  const refused: Record<string, unknown> = {
    empty: '',
    blank: ' \t\n ',
    'of 501 characters': 'x'.repeat(501),
    'of 501 characters beyond the basic plane': '😀'.repeat(501),
    'two lines': 'Asked\nfor',
    'a text with a tab': 'Asked\tfor',
    'a text with a NUL': 'Asked\0for',
    'a text with an escape sequence': '\u001b[31mAsked for',
    'a text with DEL': 'Asked\u007ffor',
    'a text with a C1 control character': 'Asked\u0085for',
    'half of a surrogate pair': 'Asked \ud83d for',
    null: null,
    'a number': 1,
    true: true,
    'a list': ['Asked for'],
    'an object': { text: 'Asked for' },
  }
  for (const [what, given] of Object.entries(refused)) {
    test(`is not ${what}`, async () => {
      const { id, ...project } = await makeProject()
      const answer = await admin.patch(`/projects/${id}`, { is_locked: true, reason: given })
      assertProblem(answer, 422, 'validation_failed')
      assert.deepEqual((await admin.get(`/projects/${id}`)).body, { id, ...project })
    })
  }

  test('is also validated where it is optional', async () => {
    const { id } = await makePlan()
    assertProblem(await admin.patch(`/plans/${id}`, { price: 1, reason: '' }), 422, 'validation_failed')
    assert.equal((await admin.get(`/plans/${id}`)).body.price, planConfiguration.price)
  })
})
