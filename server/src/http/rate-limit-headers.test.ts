import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../testing/expectations/problem.ts'
import { customers } from '../testing/fixtures/customers.ts'
import { startApi } from '../testing/harness/api.ts'
import { type Answer, Client } from '../testing/harness/client.ts'
import { testDatabase } from '../testing/harness/database.ts'

const perUser = 7
const database = await testDatabase()
const plain = await startApi(database)
const api = await startApi(database, { POSTERN_REQUESTS_PER_MINUTE_PER_USER: String(perUser) })
const { ownProject, keyOf, admin } = await customers(plain, database)
const { owner, project } = await ownProject()

const at = (url: string, { headers }: Client, base: string): Client =>
  new Client(url, headers.authorization.slice('Bearer '.length), base)
const limitOf = ({ headers }: Answer) =>
  ['limit', 'remaining', 'reset'].map((name) => headers.get(`ratelimit-${name}`))

describe("a caller's rate limit", () => {
  for (const [who, client] of [
    ['a member', at(api.url, owner, '/v1')],
    ['an administrator', at(api.url, admin, '/v1/admin')],
  ] as const) {
    test(`is in the headers of every response to ${who}, and counts down`, async () => {
      const path = who === 'a member' ? `/projects/${project.id}/domains` : '/plans'
      for (let remaining = perUser - 1; remaining >= 0; remaining--) {
        const isLast = remaining === 0
        const answer = await client.get(isLast ? `${path}?unknown=1` : path)
        assert.equal(answer.status, isLast ? 400 : 200)
        const [limit, left, reset] = limitOf(answer)
        assert.deepEqual([limit, left], [String(perUser), String(remaining)])
        assert.match(reset ?? '', /^([1-9]|[1-5]\d|60)$/)
      }
      const refused = await client.get(path)
      assertProblem(refused, 429, 'rate_limited')
      assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/)
    })
  }

  test('is shown to an API key', async () => {
    const key = await keyOf(project.id, ['suppressions:read'])
    const [limit, remaining] = limitOf(await key.get('/suppressions'))
    assert.equal(Number(limit) - Number(remaining), 1)
  })

  test('is not shown without authentication', async () => {
    const refused = await new Client(api.url, 'garbage', '/v1').get('/projects')
    assertProblem(refused, 401, 'unauthenticated')
    assert.deepEqual(limitOf(refused), [null, null, null])
  })
})

test('the response to a request without credentials says which ones the path accepts', async () => {
  const message = async (path: string) => {
    const answer = await fetch(`${api.url}/v1${path}`)
    return ((await answer.json()) as { message: string }).message
  }
  assert.match(await message('/messages'), /API key/)
  assert.match(await message('/projects'), /access token/)
  assert.match(await message('/admin/projects'), /access token/)
})
