import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures, policyConfiguration } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makePolicy, makeProject, makeFiring } = fixtures(database, admin)
const { assertAudited } = auditOf(database, admin)
const reason = 'Replaced'

describe('policies.delete', () => {
  test('deletes the policy and its firings, and keeps those of other policies', async () => {
    const { id, name } = await makePolicy()
    const project = await makeProject()
    await makeFiring(project.id, id)
    const kept = await makeFiring(project.id)
    const answer = await admin.delete(`/policies/${id}`, { reason })
    assert.equal(answer.status, 204, answer.text)
    await assertAudited(answer, {
      operation: 'policies.delete',
      resource: ['policy', id],
      reason,
      before: { ...policyConfiguration, name, tripped_at: null },
    })
    assertProblem(await admin.get(`/policies/${id}`), 404, 'not_found')
    assertProblem(await admin.delete(`/policies/${id}`, { reason }), 404, 'not_found')
    const { data } = (await admin.get(`/firings?project_id=${project.id}`)).body
    assert.deepEqual(
      data.map((firing: { id: number }) => firing.id),
      [kept],
    )
  })

  test('lets the name be used again', async () => {
    const { id, name } = await makePolicy()
    assertProblem(
      await admin.post('/policies', { ...policyConfiguration, name, reason }),
      409,
      'already_exists',
    )
    await admin.delete(`/policies/${id}`, { reason })
    assert.equal((await makePolicy({ name })).name, name)
  })
})
