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
const { makeProject, makeEndpoint } = fixtures(database, admin)
const { assertNotAudited } = auditOf(database, admin)

const { id: projectId } = await makeProject()

describe('endpoints.show', () => {
  test('returns the created endpoint with its version in the ETag and only the end of the secret', async () => {
    const { resource, secret } = await makeEndpoint(projectId)
    const answer = await admin.get(`/projects/${projectId}/endpoints/${resource.id}`)
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, resource)
    assert.equal(answer.headers.get('etag'), '"1"')
    assert.ok(!answer.text.includes(secret.slice(6, -4)))
    await assertNotAudited(answer)
  })

  test('shows delivery statistics, which change neither version nor updated_at', async () => {
    const { resource } = await makeEndpoint(projectId)
    await database.query(
      `insert into control.endpoint_stats (endpoint_id, project_id, last_success_at, consecutive_failures)
       values ($1, $2, '2026-11-14 09:30:00.5+00', 3)`,
      [resource.id, projectId],
    )
    const answer = await admin.get(`/projects/${projectId}/endpoints/${resource.id}`)
    assert.deepEqual(answer.body, {
      ...resource,
      last_success_at: '2026-11-14T09:30:00.500Z',
      consecutive_failures: 3,
    })
    assert.equal(answer.headers.get('etag'), '"1"')
  })

  test("returns the same 404 for another project's endpoint as for a missing one", async () => {
    const { resource } = await makeEndpoint(projectId)
    const other = await makeProject()
    const foreign = await admin.get(`/projects/${other.id}/endpoints/${resource.id}`)
    assertProblem(foreign, 404, 'not_found')
    assertProblem(await admin.get(`/projects/${other.id}/endpoints/999999999`), 404, 'not_found')
    const nowhere = await admin.get(`/projects/999999999/endpoints/${resource.id}`)
    assertProblem(nowhere, 404, 'not_found')
    assert.equal(nowhere.body.message, 'There is no project 999999999.')
    assert.equal(foreign.body.message, `There is no endpoint ${resource.id} in project ${other.id}.`)
    assertProblem(await admin.get(`/projects/${projectId}/endpoints/0x10`), 400, 'invalid_parameter')
  })
})
