import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf, keptOfProject } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const billed = {
  billing_subscription_id: 'sub_1',
  billing_subscription_status: 'active',
  billing_product_id: 'prod_1',
}
const unbilled = {
  billing_subscription_id: null,
  billing_subscription_status: null,
  billing_product_id: null,
}
const setBilling = (id: number, body: object) => admin.put(`/projects/${id}/billing`, body)

describe('projects.set-billing', () => {
  test('sets the three fields and nothing else, without a reason', async () => {
    const before = await makeProject()
    const answer = await setBilling(before.id, billed)
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(answer.body, { ...before, ...billed, updated_at: answer.body.updated_at })
    assert.equal(answer.headers.get('etag'), '"2"')
    assert.deepEqual((await admin.get(`/projects/${before.id}`)).body, answer.body)
    await assertAudited(answer, {
      operation: 'projects.set-billing',
      project_id: before.id,
      resource: ['project', before.id],
      before: keptOfProject(before),
      after: { ...keptOfProject(before), ...billed },
    })
  })

  test('clears fields with null, and records a reason', async () => {
    const { id } = await makeProject()
    const { body: before } = await setBilling(id, billed)
    const answer = await setBilling(id, { ...unbilled, reason: 'Refunded' })
    assert.deepEqual(answer.body, { ...before, ...unbilled, updated_at: answer.body.updated_at })
    await assertAudited(answer, {
      operation: 'projects.set-billing',
      project_id: id,
      resource: ['project', id],
      reason: 'Refunded',
      before: keptOfProject(before),
      after: { ...keptOfProject(before), ...unbilled },
    })
  })

  test('accepts every status, and keeps an override in effect', async () => {
    const { id } = await makeProject()
    await admin.patch(`/projects/${id}`, { admin_subscription_status: 'active', reason: 'Grace period' })
    for (const status of ['trialing', 'active', 'past_due', 'canceled', 'paused']) {
      const { body } = await setBilling(id, { ...billed, billing_subscription_status: status })
      assert.deepEqual([body.billing_subscription_status, body.admin_subscription_status], [status, 'active'])
    }
  })

  test('with the same state changes nothing and writes no audit row', async () => {
    const { id } = await makeProject()
    const first = await setBilling(id, billed)
    const again = await setBilling(id, { ...billed, reason: 'Sent twice' })
    assert.equal(again.text, first.text)
    assert.equal(again.headers.get('etag'), first.headers.get('etag'))
    await assertNotAudited(again)
  })

  test('names every missing field', async () => {
    const { id } = await makeProject()
    for (const field of Object.keys(billed)) {
      const answer = await setBilling(id, { ...billed, [field]: undefined })
      assertProblem(answer, 422, 'incomplete_configuration')
      assert.ok(answer.body.message.includes(`"${field}"`), answer.text)
      await assertNotAudited(answer)
    }
    assertProblem(await setBilling(id, {}), 422, 'incomplete_configuration')
  })

  test('rejects an unknown status, an empty identifier and unknown fields', async () => {
    const before = await makeProject()
    for (const change of [
      { billing_subscription_status: 'unpaid' },
      { billing_subscription_status: '' },
      { billing_subscription_id: '' },
      { billing_subscription_id: 7 },
      { billing_product_id: 'x'.repeat(256) },
      { billing_product_id: 'a\0b' },
      { plan_id: before.plan_id },
    ]) {
      assertProblem(await setBilling(before.id, { ...billed, ...change }), 422, 'validation_failed')
    }
    assert.deepEqual((await admin.get(`/projects/${before.id}`)).body, before)
  })

  test('returns 404 for a missing project', async () => {
    assertProblem(await setBilling(999_999_999, billed), 404, 'not_found')
  })
})
