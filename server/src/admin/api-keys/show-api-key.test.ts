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
const { makeProject, makeApiKey } = fixtures(database, admin)
const { assertNotAudited } = auditOf(database, admin)

const { id: projectId } = await makeProject()

describe('api-keys.show', () => {
  test('returns the created key with its version in the ETag and only the prefix of the secret', async () => {
    const { resource, secret } = await makeApiKey(projectId)
    const answer = await admin.get(`/projects/${projectId}/api-keys/${resource.id}`)
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, resource)
    assert.equal(answer.headers.get('etag'), '"1"')
    assert.ok(answer.text.includes(secret.slice(0, 12)) && !answer.text.includes(secret.slice(0, 13)))
    await assertNotAudited(answer)
  })

  test("returns the same 404 for another project's key as for a missing one", async () => {
    const { resource } = await makeApiKey(projectId)
    const other = await makeProject()
    assertProblem(await admin.get(`/projects/${other.id}/api-keys/${resource.id}`), 404, 'not_found')
    assertProblem(await admin.get(`/projects/${other.id}/api-keys/999999999`), 404, 'not_found')
    assertProblem(await admin.get(`/projects/999999999/api-keys/${resource.id}`), 404, 'not_found')
    assertProblem(await admin.get(`/projects/${projectId}/api-keys/0x10`), 400, 'invalid_parameter')
  })
})
