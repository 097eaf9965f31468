import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertKeyKeptNowhere } from '../../testing/expectations/api-key-secrets.ts'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { apiKeyConfiguration, fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeApiKey } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const reason = 'The application was shut down'
const { id: projectId } = await makeProject()
const pathOf = (id: number, project = projectId) => `/projects/${project}/api-keys/${id}`
const noteUse = (id: number) =>
  database.query(
    `insert into control.api_key_stats (api_key_id, project_id, last_used_at)
     values ($1, $2, '2026-11-14 09:30:00+00')`,
    [id, projectId],
  )

describe('api-keys.delete', () => {
  test('deletes the key, its hash and its usage, and keeps its audit rows', async () => {
    const { resource, secret } = await makeApiKey(projectId)
    await noteUse(resource.id)
    const answer = await admin.delete(pathOf(resource.id), { reason })
    assert.deepEqual([answer.status, answer.text], [204, ''])
    assertProblem(await admin.get(pathOf(resource.id)), 404, 'not_found')
    assertProblem(await admin.delete(pathOf(resource.id), { reason }), 404, 'not_found')
    const left = await database.query('select from control.api_key_stats where api_key_id = $1', [
      resource.id,
    ])
    assert.equal(left.length, 0)
    await assertAudited(answer, {
      operation: 'api-keys.delete',
      project_id: projectId,
      resource: ['api_key', resource.id],
      reason,
      before: { ...apiKeyConfiguration, mode: 'live', prefix: resource.prefix },
    })
    await assertKeyKeptNowhere(database, api, secret)
    assertProblem(await new Client(api.url, secret).get('/projects'), 403, 'api_key_not_allowed')
  })

  test('requires a reason', async () => {
    const { resource } = await makeApiKey(projectId)
    for (const body of [{}, undefined]) {
      const answer = await admin.delete(pathOf(resource.id), body)
      assertProblem(answer, 422, 'reason_required')
      await assertNotAudited(answer)
    }
    assert.equal((await admin.get(pathOf(resource.id))).status, 200)
  })

  test('takes effect once for two concurrent requests', async () => {
    const { resource } = await makeApiKey(projectId)
    const answers = await Promise.all([1, 2, 3].map(() => admin.delete(pathOf(resource.id), { reason })))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [204, 404, 404])
  })

  test('shows in its preview when an active key was last used', async () => {
    const warningsOf = async (id: number) => (await admin.delete(`${pathOf(id)}?dry_run=true`)).body.warnings
    const { resource } = await makeApiKey(projectId)
    assert.deepEqual(await warningsOf(resource.id), [])
    await noteUse(resource.id)
    assert.deepEqual(await warningsOf(resource.id), [
      'The key was last used at 2026-11-14T09:30:00.000Z: applications that still use it will be rejected.',
    ])
    await admin.patch(pathOf(resource.id), { ...apiKeyConfiguration, is_active: false })
    assert.deepEqual(await warningsOf(resource.id), [])
  })

  test("returns the same 404 for another project's key as for a missing one, and deletes nothing", async () => {
    const { resource } = await makeApiKey(projectId)
    const other = await makeProject()
    for (const path of [
      pathOf(resource.id, other.id),
      pathOf(resource.id, 999_999_999),
      pathOf(999_999_999),
    ]) {
      const answer = await admin.delete(path, { reason })
      assertProblem(answer, 404, 'not_found')
      await assertNotAudited(answer)
    }
    assert.deepEqual((await admin.get(pathOf(resource.id))).body, resource)
  })
})
