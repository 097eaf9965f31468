import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { apiKeyScopes } from '../../core/control/api-keys/scopes.ts'
import { mutationScenarios, reason } from '../../testing/expectations/mutations.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { neededQuery } from '../../testing/expectations/queries.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { isMutation } from '../operation.ts'
import { adminOperations } from '../routes.ts'
import { methodOf } from '../schema.ts'

/**
 * The administrative interface held to its word, sentence by sentence and through HTTP: here, who may call and
 * where the operations are. The other parts are beside this file, as `specification-….test.ts`.
 */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const token = await api.tokenOf(admin.email)
const { makeProject, makeMember, makeEndpoint, makeDomain, makeRoute, makeApiKey } = fixtures(database, admin)
const scenarios = mutationScenarios(database, admin)

const project = await makeProject()
const member = await makeMember(project.id)
const { resource: endpoint } = await makeEndpoint(project.id)
const idOf: Record<string, number | string> = {
  domains: (await makeDomain(project.id)).id,
  members: member.id,
  endpoints: endpoint.id,
  routing: (await makeRoute(project.id)).id,
  'api-keys': (await makeApiKey(project.id)).resource.id,
  messages: (await mailRows(database).makeMail(project.id, { sendIn: '1 day' })).messageId,
  plans: project.plan_id,
  users: project.user_id,
}

/** Every operation with an address that exists and a body that it accepts. */
const calls = await Promise.all(
  adminOperations.map(async (operation) => {
    const [noun = ''] = operation.id.split('.')
    const path = operation.path
      .replace('/admin', '')
      .replace(':project_id', String(project.id))
      .replace(':id', String(idOf[noun] ?? 1))
      .concat(neededQuery(operation))
    const prepared = isMutation(operation) ? await scenarios[operation.id]?.[0]?.prepare() : undefined
    const body = prepared && { ...prepared.body, reason }
    return { id: operation.id, method: methodOf(operation), path: prepared?.path ?? path, body }
  }),
)

const withAuthorization = async (
  authorization: string | undefined,
  { method, path, body }: { method: string; path: string; body?: unknown },
): Promise<Answer> => {
  const response = await fetch(`${api.url}/v1/admin${path}`, {
    method,
    headers: {
      ...(authorization === undefined ? {} : { authorization }),
      ...(body ? { 'content-type': 'application/json' } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : null }
}

const countAuditRows = async () =>
  (await database.query<{ count: string }>('select count(*) from control.audit'))[0]?.count

/** Nothing was done either. */
async function assertAllRefused(
  authorization: string | undefined,
  status: number,
  error: Parameters<typeof assertProblem>[2],
): Promise<void> {
  const before = await countAuditRows()
  for (const call of calls) assertProblem(await withAuthorization(authorization, call), status, error)
  assert.equal(await countAuditRows(), before)
}

describe('who may call an administrative operation', () => {
  test('nobody without the access token of a user', async () => {
    await assertAllRefused(undefined, 401, 'unauthenticated')
    const answer = await withAuthorization(undefined, { method: 'GET', path: '/projects' })
    assert.equal(answer.headers.get('www-authenticate'), 'Bearer')
  })

  test('an administrator, with the token in the header Authorization as Bearer', async () => {
    for (const call of calls.filter(({ method }) => method === 'GET')) {
      // What does not exist is for the administrator to know.
      assert.ok([200, 404].includes((await withAuthorization(`Bearer ${token}`, call)).status), call.id)
    }
    const here = { method: 'GET', path: `/projects/${project.id}` }
    for (const authorization of [
      token,
      `Basic ${token}`,
      `Token ${token}`,
      `Bearer  `,
      `Bearer ${token} x`,
    ]) {
      assertProblem(await withAuthorization(authorization, here), 401, 'unauthenticated')
    }
    assertProblem(
      await withAuthorization(undefined, { ...here, path: `${here.path}?access_token=${token}` }),
      401,
      'unauthenticated',
    )
  })

  test('nobody whose user lacks the admin role, from the moment it is lost to the moment it is back', async () => {
    const other = await signedIn(api)
    const drawn = `Bearer ${await api.tokenOf(other.email)}`
    const set = (role: string) => admin.patch(`/users/${other.userId}`, { role, reason })

    assert.equal((await set('user')).status, 200)
    await assertAllRefused(drawn, 403, 'admin_required')
    assert.equal((await set('admin')).status, 200)
    assert.equal((await withAuthorization(drawn, { method: 'GET', path: '/projects' })).status, 200)
  })

  test("no project's API key, not even a living one with every scope", async () => {
    for (const mode of ['live', 'test'] as const) {
      const { secret } = await makeApiKey(project.id, { mode, scopes: [...apiKeyScopes], allowed_ips: [] })
      await assertAllRefused(`Bearer ${secret}`, 403, 'api_key_not_allowed')
    }
    await assertAllRefused(`Bearer pk_test_${'0'.repeat(49)}`, 403, 'api_key_not_allowed')
  })
})

describe('the addresses', () => {
  const places = {
    'endpoints.delete': 'DELETE /admin/projects/:project_id/endpoints/:id',
    'endpoints.edit': 'PATCH /admin/projects/:project_id/endpoints/:id',
    'endpoints.rotate': 'POST /admin/projects/:project_id/endpoints/:id/rotate',
    'endpoints.create': 'POST /admin/projects/:project_id/endpoints',
    'endpoints.show': 'GET /admin/projects/:project_id/endpoints/:id',
    'endpoints.list': 'GET /admin/projects/:project_id/endpoints',
    'domains.create': 'POST /admin/projects/:project_id/domains',
    'domains.edit': 'PATCH /admin/projects/:project_id/domains/:id',
    'domains.delete': 'DELETE /admin/projects/:project_id/domains/:id',
    'domains.rotate': 'POST /admin/projects/:project_id/domains/:id/rotate',
    'domains.verify': 'POST /admin/projects/:project_id/domains/:id/verify',
    'domains.show': 'GET /admin/projects/:project_id/domains/:id',
    'domains.list': 'GET /admin/projects/:project_id/domains',
    'routing.delete': 'DELETE /admin/projects/:project_id/routing/:id',
    'routing.edit': 'PATCH /admin/projects/:project_id/routing/:id',
    'routing.create': 'POST /admin/projects/:project_id/routing',
    'routing.request-confirmation': 'POST /admin/projects/:project_id/routing/:id/request-confirmation',
    'routing.show': 'GET /admin/projects/:project_id/routing/:id',
    'routing.list': 'GET /admin/projects/:project_id/routing',
    'routing.match': 'GET /admin/projects/:project_id/routing/match',
    'api-keys.delete': 'DELETE /admin/projects/:project_id/api-keys/:id',
    'api-keys.edit': 'PATCH /admin/projects/:project_id/api-keys/:id',
    'api-keys.rotate': 'POST /admin/projects/:project_id/api-keys/:id/rotate',
    'api-keys.create': 'POST /admin/projects/:project_id/api-keys',
    'api-keys.show': 'GET /admin/projects/:project_id/api-keys/:id',
    'api-keys.list': 'GET /admin/projects/:project_id/api-keys',
    'projects.edit': 'PATCH /admin/projects/:project_id',
    'projects.create': 'POST /admin/projects',
    'projects.set-billing': 'PUT /admin/projects/:project_id/billing',
    'projects.show': 'GET /admin/projects/:project_id',
    'projects.list': 'GET /admin/projects',
    'members.create': 'POST /admin/projects/:project_id/members',
    'members.edit': 'PATCH /admin/projects/:project_id/members/:id',
    'members.delete': 'DELETE /admin/projects/:project_id/members/:id',
    'members.show': 'GET /admin/projects/:project_id/members/:id',
    'members.list': 'GET /admin/projects/:project_id/members',
    'activity.list': 'GET /admin/projects/:project_id/activity',
    'messages.list': 'GET /admin/projects/:project_id/messages',
    'messages.show': 'GET /admin/projects/:project_id/messages/:id',
    'messages.events': 'GET /admin/projects/:project_id/messages/:id/events',
    'messages.cancel': 'POST /admin/projects/:project_id/messages/:id/cancel',
    'suppressions.list': 'GET /admin/projects/:project_id/suppressions',
    'suppressions.delete': 'DELETE /admin/projects/:project_id/suppressions/:address',
    'usage.show': 'GET /admin/projects/:project_id/usage',
    'queue.show': 'GET /admin/projects/:project_id/queue',
    'queue.hold': 'POST /admin/projects/:project_id/queue/hold',
    'queue.release': 'POST /admin/projects/:project_id/queue/release',
    'plans.edit': 'PATCH /admin/plans/:id',
    'plans.create': 'POST /admin/plans',
    'plans.show': 'GET /admin/plans/:id',
    'plans.list': 'GET /admin/plans',
    'audit.list': 'GET /admin/audit',
    'audit.show': 'GET /admin/audit/:id',
    'audit.export': 'GET /admin/audit/export',
    'audit.verify': 'GET /admin/audit/verify',
    'denials.list': 'GET /admin/denials',
    'users.edit': 'PATCH /admin/users/:id',
    'users.show': 'GET /admin/users/:id',
    'users.list': 'GET /admin/users',
  }

  test('are where they are promised to be', () => {
    const found = Object.fromEntries(
      adminOperations.map((operation) => [operation.id, `${methodOf(operation)} ${operation.path}`]),
    )
    assert.deepEqual({ ...found, ...places }, found)
  })

  test('carry the version v1, and exist under no other', async () => {
    const path = `/admin/projects/${project.id}`
    const at = async (prefix: string) =>
      (await fetch(`${api.url}${prefix}${path}`, { headers: { authorization: `Bearer ${token}` } })).status
    assert.equal(await at('/v1'), 200)
    for (const prefix of ['', '/v0', '/v2', '/V1', '/v1.0', '/v1/v1', '/api/v1']) {
      assert.equal(await at(prefix), 404, prefix)
    }
  })

  test('are all under v1 in the OpenAPI document, which calls itself that', async () => {
    const document = (await (await fetch(`${api.url}/openapi.json`)).json()) as {
      info: { version: string }
      paths: Record<string, object>
    }
    assert.equal(document.info.version, 'v1')
    for (const place of Object.values(places)) {
      const [method = '', path = ''] = place.replaceAll(/:(\w+)/g, '{$1}').split(' ')
      assert.ok(method.toLowerCase() in (document.paths[`/v1${path}`] ?? {}), place)
    }
    assert.deepEqual(
      Object.keys(document.paths).filter((path) => path.includes('admin') && !path.startsWith('/v1/admin/')),
      [],
    )
  })

  test('answer no other method', async () => {
    const { path } = calls.find(({ id }) => id === 'projects.edit') ?? assert.fail()
    for (const method of ['PUT', 'POST', 'DELETE']) {
      const refused = await new Client(api.url, token).request(method, path, { reason })
      assertProblem(refused, 405, 'method_not_allowed')
      assert.equal(refused.headers.get('allow'), 'GET, HEAD, PATCH')
    }
  })
})
