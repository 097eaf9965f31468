import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertEachRowOnce, assertStrictPaging } from '../../testing/expectations/pages.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDomain, makeRoute } = fixtures(database, admin)

/** Inserted with SQL, because that many requests would take most of the test's time. */
async function addMany(projectId: number, domain: { id: number; name: string }, count: number) {
  const rows = await database.query<{ id: string }>(
    `insert into control.routes (project_id, domain_id, match, address, action)
     select $1, $2, 'address', gen_random_uuid() || '@' || $3, 'drop' from generate_series(1, $4) returning id`,
    [projectId, domain.id, domain.name, count],
  )
  return rows.map(({ id }) => Number(id)).reverse()
}

describe('routing.list', () => {
  test('returns each route of all domains as routing.show does, newest first', async () => {
    const [project, other] = [await makeProject(), await makeProject()]
    const [first, second] = [await makeRoute(project.id), await makeRoute(project.id, { is_active: false })]
    await makeRoute(other.id)
    const answer = await admin.get(`/projects/${project.id}/routing`)
    assert.deepEqual(answer.body, { data: [second, first], next_cursor: null })
  })

  test('returns an empty list for a project without routes', async () => {
    const { id } = await makeProject()
    assert.deepEqual((await admin.get(`/projects/${id}/routing`)).body, { data: [], next_cursor: null })
  })

  test('returns each route once at any page size, while routes are added in this and other projects', async () => {
    const [project, other] = [await makeProject(), await makeProject()]
    const [mine, theirs] = [await makeDomain(project.id), await makeDomain(other.id)]
    const older = await addMany(project.id, mine, 125)
    await addMany(other.id, theirs, 50)
    const ids = [...(await addMany(project.id, mine, 125)), ...older]
    await assertEachRowOnce(admin, `/projects/${project.id}/routing`, ids, async () => {
      await addMany(other.id, theirs, 1)
      await addMany(project.id, mine, 1)
    })
  })

  test('rejects invalid cursors, limits and filters', async () => {
    const { id } = await makeProject()
    const [lastId = 0] = await addMany(id, await makeDomain(id), 1)
    await assertStrictPaging(admin, `/projects/${id}/routing`, lastId)
    assertProblem(await admin.get(`/projects/${id}/routing?match=address`), 400, 'invalid_parameter')
  })

  test('returns 404 for a missing project', async () => {
    assertProblem(await admin.get('/projects/999999999/routing'), 404, 'not_found')
  })
})
