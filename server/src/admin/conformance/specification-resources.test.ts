import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { reason } from '../../testing/expectations/mutations.ts'
import { assertShape, type Shape } from '../../testing/expectations/shape.ts'
import {
  apiKeyConfiguration,
  endpointConfiguration,
  fixtures,
  planConfiguration,
} from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

/** The fields of each resource: exactly these, in this order, of these types, with and without a value. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeUser, makePlan, makeProject, makeMember, makeEndpoint, makeDomain, makeRoute, makeApiKey } =
  fixtures(database, admin)

const project: Shape = [
  ['id', 'integer'],
  ['user_id', 'integer'],
  ['reputation_score', 'integer'],
  ['bounced', 'integer'],
  ['failed', 'integer'],
  ['complained', 'integer'],
  ['name', 'string'],
  ['created_at', 'timestamp'],
  ['updated_at', 'timestamp'],
  ['is_locked', 'boolean'],
  ['allow_service_mta', 'boolean'],
  ['plan_id', 'integer'],
  ['admin_plan_id', 'integer'],
  ['billing_subscription_id', 'string'],
  ['billing_subscription_status', 'string'],
  ['billing_product_id', 'string'],
  ['admin_subscription_status', 'string'],
  ['plan', 'object'],
]

const plan: Shape = [
  ['id', 'integer'],
  ['max_domains', 'integer'],
  ['max_users', 'integer'],
  ['max_mails_per_day', 'integer'],
  ['max_mails_per_month', 'integer'],
  ['name', 'string'],
  ['description', 'string'],
  ['support_level', 'string'],
  ['billing_product_id', 'string'],
  ['created_at', 'timestamp'],
  ['updated_at', 'timestamp'],
  ['price', 'number'],
  ['is_active', 'boolean'],
]

const endpoint: Shape = [
  ['id', 'integer'],
  ['project_id', 'integer'],
  ['name', 'string'],
  ['url', 'string'],
  ['events', 'strings'],
  ['is_active', 'boolean'],
  ['disabled_reason', 'string'],
  ['secret_hint', 'string'],
  ['secret_rotated_at', 'timestamp'],
  ['last_success_at', 'timestamp'],
  ['consecutive_failures', 'integer'],
  ['created_at', 'timestamp'],
  ['updated_at', 'timestamp'],
]

const route: Shape = [
  ['id', 'integer'],
  ['project_id', 'integer'],
  ['domain_id', 'integer'],
  ['match', 'string'],
  ['address', 'string'],
  ['action', 'string'],
  ['endpoint_id', 'integer'],
  ['forward_to', 'string'],
  ['forward_confirmed_at', 'string'],
  ['is_active', 'boolean'],
  ['created_at', 'timestamp'],
  ['updated_at', 'timestamp'],
]

const apiKey: Shape = [
  ['id', 'integer'],
  ['project_id', 'integer'],
  ['name', 'string'],
  ['prefix', 'string'],
  ['scopes', 'strings'],
  ['domain_id', 'integer'],
  ['allowed_ips', 'strings'],
  ['expires_at', 'timestamp'],
  ['is_active', 'boolean'],
  ['last_used_at', 'timestamp'],
  ['created_at', 'timestamp'],
  ['updated_at', 'timestamp'],
]

const member: Shape = [
  ['id', 'integer'],
  ['project_id', 'integer'],
  ['user_id', 'integer'],
  ['email', 'string'],
  ['name', 'string'],
  ['role', 'string'],
  ['invited_at', 'timestamp'],
  ['joined_at', 'timestamp'],
  ['created_at', 'timestamp'],
  ['updated_at', 'timestamp'],
]

const user: Shape = [
  ['id', 'integer'],
  ['email', 'string'],
  ['name', 'string'],
  ['role', 'string'],
  ['rights', 'string'],
  ['is_active', 'boolean'],
  ['two_factor_enabled', 'boolean'],
  ['created_at', 'timestamp'],
  ['updated_at', 'timestamp'],
]

const emptiable = [
  'admin_plan_id',
  'billing_subscription_id',
  'billing_subscription_status',
  'billing_product_id',
  'admin_subscription_status',
]

/** A project with a value in every nullable field, and counters that exceed 32 bits. */
async function makeFullProject() {
  const { id } = await makeProject()
  await database.query(
    `update control.project_stats
        set computed_score = 80, bounced = 5000000001, failed = 5000000002, complained = 5000000003
      where project_id = $1`,
    [id],
  )
  await admin.put(`/projects/${id}/billing`, {
    billing_subscription_id: 'sub_1',
    billing_subscription_status: 'trialing',
    billing_product_id: 'prod_1',
  })
  const administratorsPlan = await makePlan({ billing_product_id: 'prod_2' })
  const answer = await admin.patch(`/projects/${id}`, {
    is_locked: true,
    allow_service_mta: true,
    admin_plan_id: administratorsPlan.id,
    admin_subscription_status: 'active',
    reason,
  })
  return { answer, administratorsPlan }
}

describe('a project', () => {
  test('has exactly eighteen fields in a fixed order, here all with a value', async () => {
    const { answer, administratorsPlan } = await makeFullProject()
    assertShape(answer.body, project)
    assert.equal(Object.keys(answer.body).length, 18)
    assertShape(answer.body.plan, plan)
    const { reputation_score, bounced, failed, complained, is_locked, allow_service_mta } = answer.body
    assert.deepEqual(
      { reputation_score, bounced, failed, complained, is_locked, allow_service_mta },
      {
        reputation_score: 80,
        bounced: 5_000_000_001,
        failed: 5_000_000_002,
        complained: 5_000_000_003,
        is_locked: true,
        allow_service_mta: true,
      },
    )
    const { admin_plan_id, admin_subscription_status, ...rest } = answer.body
    assert.deepEqual(
      [admin_plan_id, admin_subscription_status, rest.billing_subscription_id],
      [administratorsPlan.id, 'active', 'sub_1'],
    )
    assert.deepEqual(
      [rest.billing_subscription_status, rest.billing_product_id, rest.plan.billing_product_id],
      ['trialing', 'prod_1', 'prod_2'],
    )
  })

  test('has the same eighteen fields with five of them null', async () => {
    const { id } = await makeProject()
    const answer = await admin.patch(`/projects/${id}`, { name: 'Plain' })
    assertShape(answer.body, project, emptiable)
    assertShape(answer.body.plan, plan, ['billing_product_id'])
    const { reputation_score, bounced, failed, complained, is_locked, allow_service_mta } = answer.body
    assert.deepEqual([reputation_score, bounced, failed, complained], [100, 0, 0, 0])
    assert.deepEqual([is_locked, allow_service_mta], [false, false])
  })

  test('can be cleared again, field by field', async () => {
    const { answer } = await makeFullProject()
    const path = `/projects/${answer.body.id}`
    await admin.patch(path, { admin_plan_id: null, admin_subscription_status: null, reason })
    const emptied = await admin.put(`${path}/billing`, {
      billing_subscription_id: null,
      billing_subscription_status: null,
      billing_product_id: null,
    })
    assertShape(emptied.body, project, emptiable)
  })

  test('is the same in every response', async () => {
    const { answer } = await makeFullProject()
    const { id, name, user_id, plan_id } = answer.body
    const path = `/projects/${id}`
    assert.equal((await admin.get(path)).text, answer.text)
    const { body: listed } = await admin.get('/projects?limit=1')
    assert.equal(JSON.stringify(listed.data[0]), answer.text)
    assert.equal((await admin.patch(path, { name })).text, answer.text)
    const created = await admin.post('/projects', { name, user_id, plan_id })
    assertShape(created.body, project, emptiable)
    assert.deepEqual((await admin.get(`/projects/${created.body.id}`)).text, created.text)
  })

  test('contains the current plan, as plans.show returns it', async () => {
    const before = await makeProject()
    assert.deepEqual(before.plan, (await admin.get(`/plans/${before.plan_id}`)).body)

    const other = await makePlan({ price: 0.07, billing_product_id: 'prod_other' })
    const path = `/projects/${before.id}`
    const overridden = (await admin.patch(path, { admin_plan_id: other.id, reason })).body
    assert.deepEqual([overridden.plan_id, overridden.admin_plan_id], [before.plan_id, other.id])
    assert.equal(JSON.stringify(overridden.plan), (await admin.get(`/plans/${other.id}`)).text)

    const cleared = (await admin.patch(path, { admin_plan_id: null, reason })).body
    assert.deepEqual(cleared.plan, before.plan)
  })
})

describe('a plan', () => {
  const most = Number.MAX_SAFE_INTEGER

  test('has exactly thirteen fields in a fixed order, here all with a value', async () => {
    const full = {
      ...planConfiguration,
      ...{ max_domains: most, max_users: most, max_mails_per_day: most, max_mails_per_month: most },
      ...{ billing_product_id: 'prod_full', price: 9_999_999_999.99, support_level: 'priority' as const },
    }
    const created = await admin.post('/plans', full)
    assertShape(created.body, plan)
    assert.equal(Object.keys(created.body).length, 13)
    assert.deepEqual({ ...created.body, ...full }, created.body)
    const { id } = created.body
    assert.equal((await admin.get(`/plans/${id}`)).text, created.text)
    assert.deepEqual((await makeProject({ plan_id: id })).plan, created.body)
  })

  test('can be empty: no product, no description, limits of 0, no price, inactive', async () => {
    const bare = {
      ...planConfiguration,
      ...{ max_domains: 0, max_users: 0, max_mails_per_day: 0, max_mails_per_month: 0 },
      ...{ billing_product_id: null, description: '', price: 0 },
    }
    const created = await admin.post('/plans', bare)
    assertShape(created.body, plan, ['billing_product_id'])
    assert.deepEqual({ ...created.body, ...bare }, created.body)
    const { plan: nested } = await makeProject({ plan_id: created.body.id, reason: 'To see it' })
    assert.equal(JSON.stringify(nested), created.text)
    const retired = await admin.patch(`/plans/${created.body.id}`, { is_active: false })
    assertShape(retired.body, plan, ['billing_product_id'])
    assert.equal(retired.body.is_active, false)
  })

  test('is the same in a list', async () => {
    const { id } = await makePlan({ billing_product_id: 'prod_listed' })
    const { text } = await admin.get(`/plans/${id}`)
    const { body } = await admin.get('/plans?limit=200')
    const listed = body.data.find((item: { id: number }) => item.id === id)
    assert.equal(JSON.stringify(listed), text)
  })

  for (const price of [0, 0.01, 0.07, 1.1, 19.99, 149.5, 1000]) {
    test(`returns the price ${price} as a number, including in a project`, async () => {
      const { id } = await makePlan({ price })
      assert.match((await admin.get(`/plans/${id}`)).text, new RegExp(`"price":${price}[,}]`))
      assert.equal((await makeProject({ plan_id: id })).plan.price, price)
    })
  }
})

describe('a timestamp', () => {
  const spellings = {
    '2026-11-14 11:30:00.123456+02': '2026-11-14T09:30:00.123Z',
    '2026-11-14 09:30:00+00': '2026-11-14T09:30:00.000Z',
    '2026-12-31 23:59:59.9999+00': '2026-12-31T23:59:59.999Z',
    '2024-02-28 20:00:00.5-05': '2024-02-29T01:00:00.500Z',
  }
  for (const [stored, shown] of Object.entries(spellings)) {
    test(`is ${shown} for ${stored}: UTC with milliseconds, in a project and in its plan`, async () => {
      const { id, plan_id } = await makeProject()
      const set = 'set created_at = $1, updated_at = $1 where id = $2'
      await database.query(`update control.projects ${set}`, [stored, id])
      await database.query(`update control.plans ${set}`, [stored, plan_id])
      const { body } = await admin.get(`/projects/${id}`)
      const alone = (await admin.get(`/plans/${plan_id}`)).body
      assert.deepEqual(
        [body, body.plan, alone].map(({ created_at, updated_at }) => [created_at, updated_at]),
        [0, 1, 2].map(() => [shown, shown]),
      )
    })
  }
})

describe('an endpoint', () => {
  test('has these fields, with null for events that have not happened yet', async () => {
    const { resource } = await makeEndpoint((await makeProject()).id)
    assertShape(resource, endpoint, ['disabled_reason', 'secret_rotated_at', 'last_success_at'])
    assert.equal(resource.consecutive_failures, 0)
  })

  test('has the same fields with a value in each', async () => {
    const { resource } = await makeEndpoint((await makeProject()).id)
    const { id, project_id } = resource
    const path = `/projects/${project_id}/endpoints/${id}`
    const rotated = await admin.post(`${path}/rotate`, { reason })
    assertShape(rotated.body.resource, endpoint, ['disabled_reason', 'last_success_at'])
    await database.query(
      `update control.endpoints set is_active = false, disabled_reason = 'It did not answer for a day.' where id = $1`,
      [id],
    )
    await database.query(
      `insert into control.endpoint_stats (endpoint_id, project_id, last_success_at, consecutive_failures)
       values ($1, $2, '2026-11-14 09:30:00.123456+00', 12)`,
      [id, project_id],
    )
    const shown = await admin.get(path)
    assertShape(shown.body, endpoint)
    assert.deepEqual(
      [shown.body.last_success_at, shown.body.consecutive_failures],
      ['2026-11-14T09:30:00.123Z', 12],
    )
    const listed = await admin.get(`/projects/${project_id}/endpoints`)
    assert.equal(JSON.stringify(listed.body.data[0]), shown.text)
    const edited = await admin.patch(path, { ...endpointConfiguration, is_active: false, name: 'Renamed' })
    assertShape(edited.body, endpoint)
  })
})

describe('a route', () => {
  test('has these fields, with null where they do not apply, in every response', async () => {
    const { id: projectId } = await makeProject()
    const domain = await makeDomain(projectId)
    const { resource: hook } = await makeEndpoint(projectId)
    const all = await makeRoute(projectId, { domain_id: domain.id })
    assertShape(all, route, ['address', 'endpoint_id', 'forward_to', 'forward_confirmed_at'])
    const configuration = {
      domain_id: domain.id,
      match: 'address',
      address: `support@${domain.name}`,
      action: 'endpoint',
      endpoint_id: hook.id,
      forward_to: null,
      is_active: false,
    } as const
    const one = await makeRoute(projectId, configuration)
    assertShape(one, route, ['forward_to', 'forward_confirmed_at'])
    const path = `/projects/${projectId}/routing`
    assert.equal((await admin.get(`${path}/${one.id}`)).text, JSON.stringify(one))
    assert.deepEqual((await admin.get(path)).body.data, [one, all])
    const forwarded = { action: 'forward', endpoint_id: null, forward_to: 'ada@example.net' }
    const edited = await admin.patch(`${path}/${one.id}`, { ...configuration, ...forwarded })
    assertShape(edited.body, route, ['endpoint_id', 'forward_confirmed_at'])
  })
})

describe('an API key', () => {
  test('has these fields, with null for unset values', async () => {
    const { resource } = await makeApiKey((await makeProject()).id, { allowed_ips: [] })
    assertShape(resource, apiKey, ['domain_id', 'expires_at', 'last_used_at'])
  })

  test('has the same fields with a value in each, in every response', async () => {
    const { id: projectId } = await makeProject()
    const filled = { domain_id: (await makeDomain(projectId)).id, expires_at: '2099-01-01T00:00:00.000Z' }
    const { resource } = await makeApiKey(projectId, filled)
    await database.query(
      `insert into control.api_key_stats (api_key_id, project_id, last_used_at)
       values ($1, $2, '2026-11-14 09:30:00.123456+00')`,
      [resource.id, projectId],
    )
    const path = `/projects/${projectId}/api-keys`
    const shown = await admin.get(`${path}/${resource.id}`)
    assertShape(shown.body, apiKey)
    assert.equal(shown.body.last_used_at, '2026-11-14T09:30:00.123Z')
    assert.equal(JSON.stringify((await admin.get(path)).body.data[0]), shown.text)
    const rotated = await admin.post(`${path}/${resource.id}/rotate`, { reason })
    assertShape(rotated.body.resource, apiKey)
    const renamed = { ...apiKeyConfiguration, ...filled, name: 'Renamed' }
    assertShape((await admin.patch(`${path}/${resource.id}`, renamed)).body, apiKey)
  })
})

describe('a member', () => {
  test('has these fields, with null until the invitation is accepted', async () => {
    const { id: projectId } = await makeProject()
    assertShape(await makeMember(projectId), member, ['user_id', 'name', 'joined_at'])
  })

  test('has the same fields with a value in each, in every response', async () => {
    const { id: projectId } = await makeProject()
    const joined = await makeMember(projectId, { email: (await makeUser()).email })
    assertShape(joined, member)
    const path = `/projects/${projectId}/members`
    assert.deepEqual((await admin.get(`${path}/${joined.id}`)).text, JSON.stringify(joined))
    const { body: listed } = await admin.get(path)
    for (const item of listed.data) assertShape(item, member)
    const edited = await admin.patch(`${path}/${joined.id}`, { role: 'admin' })
    assertShape(edited.body, member)
  })
})

describe('a user', () => {
  test('has these fields and no credentials, in every response', async () => {
    const { id } = await makeUser()
    const shown = await admin.get(`/users/${id}`)
    assertShape(shown.body, user, ['rights'])
    const listed = await admin.get('/users?limit=1')
    assert.equal(JSON.stringify(listed.body.data[0]), shown.text)
    const edited = await admin.patch(`/users/${id}`, { role: 'admin', reason })
    assertShape(edited.body, user)
  })
})
