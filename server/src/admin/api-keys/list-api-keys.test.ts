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
const { makeProject, makeApiKey } = fixtures(database, admin)

/** Inserted with SQL, because that many requests would take most of the test's time. */
async function addMany(projectId: number, count: number): Promise<number[]> {
  const rows = await database.query<{ id: string }>(
    `insert into control.api_keys (project_id, name, is_test, prefix, secret_hash, scopes)
     select $1, 'Bulk', false, 'pk_live_bulk', sha256(gen_random_uuid()::text::bytea), '{usage:read}'
       from generate_series(1, $2) returning id`,
    [projectId, count],
  )
  return rows.map(({ id }) => Number(id)).reverse()
}

describe('api-keys.list', () => {
  test('returns each key as api-keys.show does, newest first, without secrets', async () => {
    const [project, other] = [await makeProject(), await makeProject()]
    const [first, second] = [await makeApiKey(project.id), await makeApiKey(project.id, { mode: 'test' })]
    await makeApiKey(other.id)
    const answer = await admin.get(`/projects/${project.id}/api-keys`)
    assert.deepEqual(answer.body, { data: [second.resource, first.resource], next_cursor: null })
    for (const { secret } of [first, second]) assert.ok(!answer.text.includes(secret.slice(12, 20)))
  })

  test('returns an empty list for a project without keys', async () => {
    const { id } = await makeProject()
    assert.deepEqual((await admin.get(`/projects/${id}/api-keys`)).body, { data: [], next_cursor: null })
  })

  test('returns each key once at any page size, while keys are added in this and other projects', async () => {
    const [project, other] = [await makeProject(), await makeProject()]
    const older = await addMany(project.id, 125)
    await addMany(other.id, 50)
    const ids = [...(await addMany(project.id, 125)), ...older]
    await assertEachRowOnce(admin, `/projects/${project.id}/api-keys`, ids, async () => {
      await addMany(other.id, 1)
      await addMany(project.id, 1)
    })
  })

  test('rejects invalid cursors, limits and filters', async () => {
    const { id } = await makeProject()
    const [lastId = 0] = await addMany(id, 1)
    await assertStrictPaging(admin, `/projects/${id}/api-keys`, lastId)
    assertProblem(await admin.get(`/projects/${id}/api-keys?prefix=pk_live_bulk`), 400, 'invalid_parameter')
  })

  test('returns 404 for a missing project', async () => {
    assertProblem(await admin.get('/projects/999999999/api-keys'), 404, 'not_found')
  })
})
