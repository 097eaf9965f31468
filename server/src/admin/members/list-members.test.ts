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
const { makeUser, makeProject, makeMember } = fixtures(database, admin)

/** Inserted with SQL, because that many requests would take most of the test's time. */
async function addMany(projectId: number, count: number): Promise<number[]> {
  const rows = await database.query<{ id: string }>(
    `insert into control.members (project_id, email, role)
     select $1, gen_random_uuid() || '@example.org', 'viewer' from generate_series(1, $2) returning id`,
    [projectId, count],
  )
  return rows.map(({ id }) => Number(id)).reverse()
}

describe('members.list', () => {
  test("returns the project's members and invitations as members.show does, newest first", async () => {
    const owner = await makeUser()
    const { id } = await makeProject({ user_id: owner.id })
    const user = await makeUser()
    const joined = await makeMember(id, { email: user.email, role: 'admin' })
    const invited = await makeMember(id, { role: 'viewer' })
    await makeMember((await makeProject()).id)
    const { data, next_cursor } = (await admin.get(`/projects/${id}/members`)).body
    assert.deepEqual(data.slice(0, 2), [invited, joined])
    assert.deepEqual([data.length, data[2].user_id, data[2].role], [3, owner.id, 'owner'])
    assert.equal(next_cursor, null)
  })

  test('returns each member once at any page size, while members are added in this and other projects', async () => {
    const [project, other] = [await makeProject(), await makeProject()]
    const older = await addMany(project.id, 125)
    await addMany(other.id, 50)
    const ids = [...(await addMany(project.id, 125)), ...older]
    await assertEachRowOnce(admin, `/projects/${project.id}/members`, ids, async () => {
      await addMany(other.id, 1)
      await addMany(project.id, 1)
    })
  })

  test('rejects invalid cursors, limits and filters', async () => {
    const { id } = await makeProject()
    const [lastId = 0] = await addMany(id, 1)
    await assertStrictPaging(admin, `/projects/${id}/members`, lastId)
    assertProblem(await admin.get(`/projects/${id}/members?role=admin`), 400, 'invalid_parameter')
  })

  test("returns only the project's members, even with a cursor from another project's list", async () => {
    const [project, other] = [await makeProject(), await makeProject()]
    await addMany(other.id, 5)
    const { next_cursor } = (await admin.get(`/projects/${other.id}/members?limit=1`)).body
    const answer = await admin.get(`/projects/${project.id}/members?cursor=${next_cursor}`)
    assert.deepEqual(
      new Set(answer.body.data.map((member: { project_id: number }) => member.project_id)),
      new Set([project.id]),
    )
  })

  test('returns 404 for a missing project', async () => {
    assertProblem(await admin.get('/projects/999999999/members'), 404, 'not_found')
  })
})
