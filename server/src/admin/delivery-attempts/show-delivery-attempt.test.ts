import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeEndpoint } = fixtures(database, admin)
const { makeEvent, makeAttempt } = mailRows(database)
const { id: projectId } = await makeProject()
const { resource } = await makeEndpoint(projectId)

describe('delivery-attempts.show', () => {
  test('returns the attempt with its payload, and records the lookup', async () => {
    const id = await makeAttempt(projectId, resource.id, await makeEvent(projectId))
    const { status, body, text } = await admin.get(`/projects/${projectId}/delivery-attempts/${id}`)
    assert.equal(status, 200, text)
    assert.deepEqual([body.id, body.endpoint_id, body.response], [id, resource.id, 'ok'])
    const { type, data } = JSON.parse(body.payload.text)
    assert.deepEqual([type, data], ['domain.verified', { project_id: projectId }])
    const { data: lookups } = (await admin.get('/audit/lookups')).body
    assert.deepEqual(
      lookups.map(({ operation, question, project_ids }: Record<string, unknown>) => [
        operation,
        question,
        project_ids,
      ]),
      [['delivery-attempts.show', `delivery attempt ${id}, endpoint ${resource.id}`, [projectId]]],
    )
  })

  test("returns the same 404 for another project's attempt as for a missing one, and records nothing", async () => {
    const { id: other } = await makeProject()
    const id = await makeAttempt(projectId, resource.id, await makeEvent(projectId))
    const { data: before } = (await admin.get('/audit/lookups')).body
    for (const path of [
      `/projects/${other}/delivery-attempts/${id}`,
      `/projects/${projectId}/delivery-attempts/${id.replace(/.$/, id.endsWith('0') ? '1' : '0')}`,
    ]) {
      assertProblem(await admin.get(path), 404, 'not_found')
    }
    assert.deepEqual((await admin.get('/audit/lookups')).body.data, before)
  })
})
