import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { apiKeyScopes } from '../../core/control/api-keys/scopes.ts'
import { expectedAdminOperations } from '../../testing/expectations/admin-operations.ts'
import { mutationScenarios, reason } from '../../testing/expectations/mutations.ts'
import { neverSent } from '../../testing/expectations/path-targets.ts'
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
 * The specification of the administrative interface, tested sentence by sentence over HTTP. This file: access and
 * paths. The other parts are the files `specification-….test.ts`.
 */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const token = await api.tokenOf(admin.email)
const { makeProject, makeMember, makeEndpoint, makeDomain, makeRoute, makeApiKey, makeBulk } = fixtures(
  database,
  admin,
)
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
  bulk: (await makeBulk(project.id)).id,
  'delivery-attempts': neverSent,
  plans: project.plan_id,
  users: project.user_id,
}

/** Every operation with an existing path and a valid body. */
const calls = await Promise.all(
  adminOperations.map(async (operation) => {
    const [noun = ''] = operation.id.split('.')
    const path = operation.path
      .replace('/admin', '')
      .replace(':project_id', String(project.id))
      .replace(':id', String(idOf[noun] ?? 1))
      .concat(neededQuery(operation))
    const prepared = isMutation(operation) ? await scenarios[operation.id]?.[0]?.prepare() : undefined
    const body = isMutation(operation) ? prepared && { ...prepared.body, reason } : operation.body?.example
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

/** Asserts that every request is rejected and changes nothing. */
async function assertAllRefused(
  authorization: string | undefined,
  status: number,
  error: Parameters<typeof assertProblem>[2],
): Promise<void> {
  const before = await countAuditRows()
  for (const call of calls) assertProblem(await withAuthorization(authorization, call), status, error)
  assert.equal(await countAuditRows(), before)
}

describe('access to administrative operations', () => {
  test("is denied without a user's access token", async () => {
    await assertAllRefused(undefined, 401, 'unauthenticated')
    const answer = await withAuthorization(undefined, { method: 'GET', path: '/projects' })
    assert.equal(answer.headers.get('www-authenticate'), 'Bearer')
  })

  test('is granted to an administrator with a bearer token in the Authorization header', async () => {
    for (const call of calls.filter(({ method }) => method === 'GET')) {
      // Only the administrator learns that a resource does not exist.
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

  test('is denied as long as the user lacks the admin role', async () => {
    const other = await signedIn(api)
    const drawn = `Bearer ${await api.tokenOf(other.email)}`
    const set = (role: string) => admin.patch(`/users/${other.userId}`, { role, reason })

    assert.equal((await set('user')).status, 200)
    await assertAllRefused(drawn, 403, 'admin_required')
    assert.equal((await set('admin')).status, 200)
    assert.equal((await withAuthorization(drawn, { method: 'GET', path: '/projects' })).status, 200)
  })

  test('is denied to API keys, even to a valid one with every scope', async () => {
    for (const mode of ['live', 'test'] as const) {
      const { secret } = await makeApiKey(project.id, { mode, scopes: [...apiKeyScopes], allowed_ips: [] })
      await assertAllRefused(`Bearer ${secret}`, 403, 'api_key_not_allowed')
    }
    await assertAllRefused(`Bearer pk_test_${'0'.repeat(49)}`, 403, 'api_key_not_allowed')
  })
})

describe('the paths', () => {
  test('match the specification', () => {
    const found = Object.fromEntries(
      adminOperations.map((operation) => [operation.id, `${methodOf(operation)} /v1${operation.path}`]),
    )
    const expected = Object.entries(expectedAdminOperations).map(([id, { route }]) => [id, route])
    assert.deepEqual(found, Object.fromEntries(expected))
  })

  test('begin with v1, and exist under no other version', async () => {
    const path = `/admin/projects/${project.id}`
    const at = async (prefix: string) =>
      (await fetch(`${api.url}${prefix}${path}`, { headers: { authorization: `Bearer ${token}` } })).status
    assert.equal(await at('/v1'), 200)
    for (const prefix of ['', '/v0', '/v2', '/V1', '/v1.0', '/v1/v1', '/api/v1']) {
      assert.equal(await at(prefix), 404, prefix)
    }
  })

  test('are all under v1 in the OpenAPI document, which has that version', async () => {
    const document = (await (await fetch(`${api.url}/openapi.json`)).json()) as {
      info: { version: string }
      paths: Record<string, object>
    }
    assert.equal(document.info.version, 'v1')
    for (const { route } of Object.values(expectedAdminOperations)) {
      const [method = '', path = ''] = route.replaceAll(/:(\w+)/g, '{$1}').split(' ')
      assert.ok(method.toLowerCase() in (document.paths[path] ?? {}), route)
    }
    assert.deepEqual(
      Object.keys(document.paths).filter((path) => path.includes('admin') && !path.startsWith('/v1/admin/')),
      [],
    )
  })

  test('accept no other method', async () => {
    const { path } = calls.find(({ id }) => id === 'projects.edit') ?? assert.fail()
    for (const method of ['PUT', 'POST', 'DELETE']) {
      const refused = await new Client(api.url, token).request(method, path, { reason })
      assertProblem(refused, 405, 'method_not_allowed')
      assert.equal(refused.headers.get('allow'), 'GET, HEAD, PATCH')
    }
  })
})
