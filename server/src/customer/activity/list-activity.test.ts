import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const { ownProject, member, keyOf } = await customers(api, database)

interface Entry {
  id: number
  operation: string
  actor: { email: string; ip: string }
  before: { name: string }
  after: { name: string }
}

describe('activity.list', () => {
  test('shows owners and admins the changes with their actors, newest first, in pages', async () => {
    const { owner, project } = await ownProject({ name: 'Name 0' })
    const manager = await member(project.id, 'admin')
    const path = `/projects/${project.id}`
    for (let no = 1; no <= 5; no++) await owner.patch(path, { name: `Name ${no}` })
    const seen: Entry[] = []
    let cursor = ''
    do {
      const { status, body, text } = await manager.get(`${path}/activity?limit=2${cursor}`)
      assert.equal(status, 200, text)
      seen.push(...body.data)
      cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
    } while (cursor !== '')
    assert.deepEqual(
      seen.map(({ id }) => id),
      [5, 4, 3, 2, 1],
    )
    const [newest] = seen
    assert.deepEqual(
      [newest?.operation, newest?.actor.email, newest?.before.name, newest?.after.name],
      ['projects.edit', owner.user.email, 'Name 4', 'Name 5'],
    )
    assert.ok(newest?.actor.ip)
  })

  test('filters by person and by time', async () => {
    const { owner, project } = await ownProject({ name: 'Name 0' })
    const manager = await member(project.id, 'admin')
    const path = `/projects/${project.id}`
    await owner.patch(path, { name: 'Name 1' })
    await manager.patch(path, { name: 'Name 2' })
    await owner.patch(path, { name: 'Name 3' })
    const at = (await owner.get(`${path}/activity`)).body.data.map((entry: { at: string }) => entry.at)
    const names = async (query: Record<string, string>): Promise<string[]> => {
      const { status, body, text } = await owner.get(`${path}/activity?${new URLSearchParams(query)}`)
      assert.equal(status, 200, text)
      assert.equal(body.next_cursor, null)
      return body.data.map(({ after }: Entry) => after.name)
    }
    const ownerId = String(owner.user.id)
    assert.deepEqual(await names({ user_id: ownerId }), ['Name 3', 'Name 1'])
    assert.deepEqual(await names({ user_id: String(manager.user.id) }), ['Name 2'])
    assert.deepEqual(await names({ from: at[1] }), ['Name 3', 'Name 2'])
    assert.deepEqual(await names({ to: at[1] }), ['Name 1'])
    assert.deepEqual(await names({ user_id: ownerId, from: at[1] }), ['Name 3'])
  })

  test('rejects developers, viewers, API keys and other projects', async () => {
    const { project } = await ownProject()
    const { owner: other } = await ownProject()
    const path = `/projects/${project.id}/activity`
    for (const role of ['developer', 'viewer'] as const) {
      assertProblem(await (await member(project.id, role)).get(path), 403, 'insufficient_role')
    }
    const key = await keyOf(project.id, ['domains:read', 'endpoints:read', 'usage:read'])
    assertProblem(await key.get(path), 403, 'insufficient_scope')
    assertProblem(await other.get(path), 404, 'not_found')
  })

  test('shows the address of an invited person, which is stored outside the chain', async () => {
    const { owner, project } = await ownProject()
    const email = 'grace.hopper@example.org'
    await owner.post(`/projects/${project.id}/members`, { email, role: 'viewer' })
    const [entry] = (await owner.get(`/projects/${project.id}/activity`)).body.data
    assert.equal(entry.after.email, email)
    const [row] = await database.query<{ whole: string }>(
      'select activity::text as whole from control.project_activity as activity where project_id = $1',
      [project.id],
    )
    assert.ok(row && !row.whole.includes('grace'))
  })
})
