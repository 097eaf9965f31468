import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../testing/expectations/problem.ts'
import { customers } from '../testing/fixtures/customers.ts'
import { startApi } from '../testing/harness/api.ts'
import { type Answer, Client } from '../testing/harness/client.ts'
import { testDatabase } from '../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const { admin, ownProject, keyOf } = await customers(api, database)
const { owner, project } = await ownProject()
const key = await keyOf(project.id, ['domains:read'])
const { paths } = (await new Client(api.url, '', '').get('/openapi.json')).body

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
/** The documented paths below a prefix, with their methods. No project, domain or other resource has the id 1. */
const documented = (prefix: RegExp): { path: string; allow: string[] }[] =>
  Object.entries(paths as Record<string, Record<string, unknown>>)
    .filter(([path]) => prefix.test(path))
    .map(([path, operations]) => {
      const allow = Object.keys(operations).map((method) => method.toUpperCase())
      // A HEAD request would do all of the same work: these operations are slow, or record a lookup.
      const hasHead =
        !/\/(audit\/(export|verify)|backtest|admin\/messages|admin\/.*\/delivery-attempts\/\{id\}|evidence\/\{id\}\/file)$/.test(
          path,
        )
      if (allow.includes('GET') && hasHead) allow.push('HEAD')
      return { path: path.replaceAll(/\{\w+\}/g, '1'), allow }
    })

async function assertRefused(prefix: RegExp, call: (method: string, path: string) => Promise<Answer>) {
  const known = documented(prefix)
  assert.ok(known.length > 5)
  for (const { path, allow } of known) {
    for (const method of methods.filter((one) => !allow.includes(one))) {
      const refused = await call(method, path)
      if (method !== 'HEAD') assertProblem(refused, 405, 'method_not_allowed')
      assert.equal(refused.status, 405, `${method} ${path}`)
      assert.deepEqual(refused.headers.get('allow')?.split(', '), allow.toSorted(), `${method} ${path}`)
    }
  }
}

const as = ({ headers }: Client) => {
  const client = new Client(api.url, headers.authorization.slice('Bearer '.length), '')
  return (method: string, path: string) => client.request(method, path)
}

describe('an unsupported method on a known path', () => {
  test('returns 405 with the supported methods to administrators', () =>
    assertRefused(/^\/v1\/admin\//, as(admin)))

  test('returns 405 to members, whether or not the project exists', () =>
    assertRefused(/^\/v1\/(projects|invitations)/, as(owner)))

  test('returns 405 to API keys, regardless of their scopes', () =>
    assertRefused(/^\/v1\/(messages|suppressions|usage)/, as(key)))

  test('returns 405 on the signin plane, which needs no token', () =>
    assertRefused(/^\/(v1\/auth\/|healthz$|readyz$)/, as(new Client(api.url, 'unused'))))

  test('returns 401 or 403 first', async () => {
    const anyone = as(new Client(api.url, 'garbage'))
    assertProblem(await anyone('PUT', '/v1/admin/projects'), 401, 'unauthenticated')
    assertProblem(await anyone('PUT', '/v1/projects'), 401, 'unauthenticated')
    assertProblem(await anyone('PUT', '/v1/messages'), 401, 'unauthenticated')
    assertProblem(await as(owner)('PUT', '/v1/admin/projects'), 403, 'admin_required')
    assertProblem(await as(owner)('PUT', '/v1/messages'), 403, 'insufficient_role')
    assertProblem(await as(key)('PUT', '/v1/admin/projects'), 403, 'api_key_not_allowed')
  })

  test('is rejected before its body is read', async () => {
    const body = { 'content-type': 'text/plain' }
    assertProblem(await admin.request('PUT', '/projects', { x: 1 }, body), 405, 'method_not_allowed')
  })
})

test('an unknown path returns 404', async () => {
  assertProblem(await as(admin)('PUT', '/v1/admin/nothing'), 404, 'not_found')
  assertProblem(await as(owner)('PUT', '/v1/nothing'), 404, 'not_found')
})
