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
const { makeProject, makeDomain } = fixtures(database, admin)

/** Inserted with SQL, because that many requests would take most of the test's time. */
async function addMany(projectId: number, count: number): Promise<number[]> {
  const rows = await database.query<{ id: string }>(
    `with made as (
       insert into control.domains (project_id, name, mta_provider, ownership_token)
       select $1, gen_random_uuid() || '.example.com', 'ses', 'token' from generate_series(1, $2)
       returning id, name
     ), identified as (
       insert into control.identities (project_id, domain_id, name, provider) select $1, id, name, 'ses' from made
     ), recorded as (
       insert into control.dns_records (project_id, domain_id, purpose, type, name, value)
       select $1, id, 'ownership', 'TXT', '_postern.' || name, 'token' from made
     ) select id from made order by id desc`,
    [projectId, count],
  )
  return rows.map(({ id }) => Number(id))
}

describe('domains.list', () => {
  test('returns each domain as domains.show does, newest first', async () => {
    const [project, other] = [await makeProject(), await makeProject()]
    const first = await makeDomain(project.id)
    const second = await makeDomain(project.id, { mta_provider: 'service' })
    await makeDomain(other.id)
    await admin.patch(`/projects/${project.id}/domains/${first.id}`, { name: 'renamed.example.com' })
    const renamed = (await admin.get(`/projects/${project.id}/domains/${first.id}`)).body
    const answer = await admin.get(`/projects/${project.id}/domains`)
    assert.deepEqual(answer.body, { data: [second, renamed], next_cursor: null })
    assert.ok(!answer.text.includes('PRIVATE KEY'))
  })

  test('returns an empty list for a project without domains', async () => {
    const { id } = await makeProject()
    assert.deepEqual((await admin.get(`/projects/${id}/domains`)).body, { data: [], next_cursor: null })
  })

  test('returns each domain once at any page size, while domains are added in this and other projects', async () => {
    const [project, other] = [await makeProject(), await makeProject()]
    const older = await addMany(project.id, 125)
    await addMany(other.id, 50)
    const ids = [...(await addMany(project.id, 125)), ...older]
    await assertEachRowOnce(admin, `/projects/${project.id}/domains`, ids, async () => {
      await addMany(other.id, 1)
      await addMany(project.id, 1)
    })
  })

  test('rejects invalid cursors, limits and filters', async () => {
    const { id } = await makeProject()
    const [lastId = 0] = await addMany(id, 1)
    await assertStrictPaging(admin, `/projects/${id}/domains`, lastId)
    assertProblem(await admin.get(`/projects/${id}/domains?status=verified`), 400, 'invalid_parameter')
  })

  test('returns 404 for a missing project', async () => {
    assertProblem(await admin.get('/projects/999999999/domains'), 404, 'not_found')
  })
})
