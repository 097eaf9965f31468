import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertStrictPaging } from '../../testing/expectations/pages.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const { admin, ownProject } = await customers(api, database)

describe('activity.list by an administrator', () => {
  test("returns the rows that members see, without administrators' changes", async () => {
    const { owner, project } = await ownProject()
    const path = `/projects/${project.id}`
    await owner.patch(path, { name: 'By its owner' })
    await admin.patch(path, { name: 'By an administrator' })
    const { status, body } = await admin.get(`${path}/activity`)
    assert.equal(status, 200)
    assert.deepEqual(body, (await owner.get(`${path}/activity`)).body)
    assert.deepEqual([body.data.length, body.data[0].actor.id], [1, owner.user.id])
  })

  test('rejects invalid cursors and missing projects', async () => {
    const { project } = await ownProject()
    await assertStrictPaging(admin, `/projects/${project.id}/activity`, 1)
    assertProblem(await admin.get('/projects/999999999/activity'), 404, 'not_found')
  })
})
