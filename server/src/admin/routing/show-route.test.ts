import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeRoute } = fixtures(database, admin)
const { assertNotAudited } = auditOf(database, admin)

const { id: projectId } = await makeProject()

describe('routing.show', () => {
  test('returns the created resource, with its version in the ETag', async () => {
    const route = await makeRoute(projectId)
    const answer = await admin.get(`/projects/${projectId}/routing/${route.id}`)
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, route)
    assert.equal(answer.headers.get('etag'), '"1"')
    await assertNotAudited(answer)
  })

  test("returns the same 404 for another project's route as for a missing one", async () => {
    const route = await makeRoute(projectId)
    const other = await makeProject()
    assertProblem(await admin.get(`/projects/${other.id}/routing/${route.id}`), 404, 'not_found')
    assertProblem(await admin.get(`/projects/${other.id}/routing/999999999`), 404, 'not_found')
    assertProblem(await admin.get(`/projects/999999999/routing/${route.id}`), 404, 'not_found')
    assertProblem(await admin.get(`/projects/${projectId}/routing/0x10`), 400, 'invalid_parameter')
  })
})
