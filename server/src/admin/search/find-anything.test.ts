import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDomain, makeRoute, makeUser } = fixtures(database, admin)

const find = (q: string) => admin.get(`/search?q=${encodeURIComponent(q)}`)

describe('search.find', () => {
  test('finds a project, its domain, its route and its owner', async () => {
    const owner = await makeUser()
    const project = await makeProject({ name: 'Quixotic Mills', user_id: owner.id })
    const domain = await makeDomain(project.id, { name: 'quixotic-mills.example' })
    const route = await makeRoute(project.id, {
      domain_id: domain.id,
      match: 'address',
      address: `sancho@${domain.name}`,
    })
    const of = { project_id: project.id, project_name: 'Quixotic Mills' }
    const { status, body, text } = await find('  QUIXOTIC ')
    assert.equal(status, 200, text)
    assert.deepEqual(body, {
      data: [
        { type: 'project', id: project.id, ...of, label: 'Quixotic Mills' },
        { type: 'domain', id: domain.id, ...of, label: domain.name },
        { type: 'route', id: route.id, ...of, label: `sancho@${domain.name}` },
      ],
    })
    const [user] = await database.query<{ email: string; name: string }>(
      'select email, name from control.users where id = $1',
      [owner.id],
    )
    const byAddress = await find(user?.email ?? '')
    assert.deepEqual(byAddress.body.data[0], {
      type: 'user',
      id: owner.id,
      project_id: null,
      project_name: null,
      label: `${user?.name} <${user?.email}>`,
    })
  })

  test('returns no results without a match', async () => {
    assert.deepEqual((await find('no such name anywhere')).body, { data: [] })
  })

  test('returns at most twenty results', async () => {
    for (let n = 0; n < 22; n++) await makeProject({ name: `Windmill ${n}` })
    assert.equal((await find('windmill')).body.data.length, 20)
  })

  test('requires one to a hundred characters, at least one of them visible', async () => {
    for (const q of ['', '   ', 'x'.repeat(101), 'a\0b'])
      assertProblem(await find(q), 400, 'invalid_parameter')
    assertProblem(await admin.get('/search'), 400, 'invalid_parameter')
    assertProblem(await admin.get('/search?q=a&limit=5'), 400, 'invalid_parameter')
    for (const q of ['x'.repeat(100), '%', '\\', "'", '🦊', '€€€'])
      assert.equal((await find(q)).status, 200, q)
  })
})
