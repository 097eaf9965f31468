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
const { makePlan, makePolicy } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)
const reason = 'It fired too often'

const edit = (id: number, body: object, query = '') =>
  admin.patch(`/policies/${id}${query}`, { reason, ...body })

/** As the breaker leaves a policy. */
async function makeTripped() {
  const { id } = await makePolicy()
  await database.query('update control.policies set tripped_at = postern.now() where id = $1', [id])
  const { body } = await admin.get(`/policies/${id}`)
  assert.notEqual(body.tripped_at, null)
  return body
}

describe('policies.edit', () => {
  test('changes each field separately', async () => {
    const plan = await makePlan()
    const changes = {
      name: 'Renamed',
      mode: 'enforce',
      applies_to: { plan_ids: [plan.id], younger_than_days: null, except_project_ids: [1] },
      signal: 'failure_rate',
      window_minutes: 5,
      threshold: 99.5,
      minimum_volume: 1,
      intervention: { kind: 'pace', pace_per_hour: 1, duration_minutes: 5, public_note: null },
      cooldown_minutes: 5,
    }
    assert.deepEqual(Object.keys(changes), Object.keys(policyConfiguration))
    for (const [field, value] of Object.entries(changes)) {
      const before = await makePolicy()
      const answer = await edit(before.id, { [field]: value })
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual(answer.body, {
        ...before,
        [field]: value,
        version: 2,
        updated_at: answer.body.updated_at,
      })
      assert.equal(answer.headers.get('etag'), '"2"')
      const configuration = { ...policyConfiguration, name: before.name, tripped_at: null }
      await assertAudited(answer, {
        operation: 'policies.edit',
        resource: ['policy', before.id],
        reason,
        before: configuration,
        after: { ...configuration, [field]: value },
      })
    }
  })

  test('keeps the version and writes no audit row if nothing changes', async () => {
    const policy = await makePolicy()
    const { except_project_ids, ...scope } = policy.applies_to
    for (const body of [
      {},
      { mode: 'shadow' },
      { name: ` ${policy.name} `, applies_to: { except_project_ids, ...scope }, threshold: 20 },
    ]) {
      const answer = await edit(policy.id, body)
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual(answer.body, policy)
      await assertNotAudited(answer)
    }
  })

  test('checks the configuration that results', async () => {
    const pace = { kind: 'pace', pace_per_hour: 5, duration_minutes: null, public_note: null }
    const { id } = await makePolicy()
    for (const body of [
      { signal: 'score' },
      { threshold: 0 },
      { intervention: { ...pace, kind: 'hold' } },
      { applies_to: { plan_ids: [987_654], younger_than_days: null, except_project_ids: [] } },
    ]) {
      assertProblem(await edit(id, body), 422, 'validation_failed')
    }
    assert.equal((await edit(id, { signal: 'score', window_minutes: 10_080 })).status, 200)
    assertProblem(await edit(id, { window_minutes: 60 }), 422, 'validation_failed')
    assertProblem(await edit(id, { name: 'Bounce rate of 5 % or more' }), 409, 'already_exists')
    assertProblem(await edit(987_654, { mode: 'off' }), 404, 'not_found')
  })

  test('rejects one of two concurrent edits to the same name', async () => {
    const [one, other] = [await makePolicy(), await makePolicy()]
    const answers = await Promise.all([one, other].map(({ id }) => edit(id, { name: 'Contested' })))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409])
  })

  test('with a mode resets the breaker, also if the mode stays shadow', async () => {
    for (const mode of ['shadow', 'enforce', 'off']) {
      const policy = await makeTripped()
      const preview = await edit(policy.id, { mode }, '?dry_run=true')
      assert.ok(preview.body.effects.includes('The breaker is reset.'))
      const answer = await edit(policy.id, { mode })
      assert.deepEqual([answer.body.mode, answer.body.tripped_at, answer.body.version], [mode, null, 2])
      const configuration = { ...policyConfiguration, name: policy.name }
      await assertAudited(answer, {
        operation: 'policies.edit',
        resource: ['policy', policy.id],
        reason,
        before: { ...configuration, tripped_at: policy.tripped_at },
        after: { ...configuration, mode, tripped_at: null },
      })
    }
  })

  test('without a mode keeps tripped_at', async () => {
    const policy = await makeTripped()
    const answer = await edit(policy.id, { threshold: 30 })
    assert.deepEqual([answer.body.threshold, answer.body.tripped_at], [30, policy.tripped_at])
    const unchanged = await edit(policy.id, { threshold: 30 })
    await assertNotAudited(unchanged)
  })
})
