import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const { admin, make, stranger, ownProject } = await customers(api, database)

describe('projects.list by a customer', () => {
  test('shows only the projects in which the caller is a member, newest first', async () => {
    const ada = await stranger()
    const own = await make.makeProject({ user_id: ada.user.id })
    await ownProject()
    const { project: joined } = await ownProject()
    await make.makeMember(joined.id, { email: ada.user.email, role: 'viewer' })
    const { body } = await ada.get('/projects')
    assert.deepEqual(
      body.data.map(({ id }: { id: number }) => id),
      [joined.id, own.id],
    )
    assert.equal(body.next_cursor, null)
    assert.deepEqual(
      body.data.map(({ role }: { role: string }) => role),
      ['viewer', 'owner'],
    )
    for (const shown of body.data) {
      assert.deepEqual(shown, (await ada.get(`/projects/${shown.id}`)).body)
    }
  })

  test('is paginated with a cursor', async () => {
    const ada = await stranger()
    const made = []
    for (let n = 0; n < 5; n++) made.unshift((await make.makeProject({ user_id: ada.user.id })).id)
    const seen = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const page: { data: { id: number }[]; next_cursor: string | null } = (
        await ada.get(`/projects?limit=2${cursor && `&cursor=${cursor}`}`)
      ).body
      seen.push(...page.data.map(({ id }) => id))
      cursor = page.next_cursor
    }
    assert.deepEqual(seen, made)
    assertProblem(await ada.get('/projects?cursor=x'), 400, 'invalid_parameter')
    assertProblem(await ada.get('/projects?q=x'), 400, 'invalid_parameter')
  })

  test('omits a project as soon as the caller is no longer a member', async () => {
    const ada = await stranger()
    const { project } = await ownProject()
    const { id } = await make.makeMember(project.id, { email: ada.user.email })
    assert.equal((await ada.get('/projects')).body.data.length, 1)
    await admin.delete(`/projects/${project.id}/members/${id}`, { reason: 'Left' })
    assert.deepEqual((await ada.get('/projects')).body.data, [])
  })
})
