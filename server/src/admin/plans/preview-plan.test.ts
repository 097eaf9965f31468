import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makePlan, makeProject, makeMember, makeDomain } = fixtures(database, admin)
const preview = async (id: number, body: object) =>
  (await admin.patch(`/plans/${id}?dry_run=true`, body)).body

describe('preview of plans.edit', () => {
  test('counts the projects that are currently on the plan', async () => {
    const [plan, other] = [await makePlan(), await makePlan()]
    await makeProject({ plan_id: plan.id })
    const overridden = await makeProject({ plan_id: other.id })
    await admin.patch(`/projects/${overridden.id}`, { admin_plan_id: plan.id, reason: 'Agreed' })
    const away = await makeProject({ plan_id: plan.id })
    await admin.patch(`/projects/${away.id}`, { admin_plan_id: other.id, reason: 'Agreed' })
    const { effects } = await preview(plan.id, { max_domains: 7 })
    assert.deepEqual(effects, [
      'Applies immediately to the projects on this plan: 2.',
      'The limit max_domains changes from 1000 to 7.',
    ])
  })

  test('lists no effects if nothing changes', async () => {
    const plan = await makePlan()
    await makeProject({ plan_id: plan.id })
    const { changes, effects } = await preview(plan.id, { max_domains: plan.max_domains })
    assert.deepEqual([changes, effects], [[], []])
  })

  test('names the projects that exceed the new limits', async () => {
    const plan = await makePlan()
    const full = await makeProject({ plan_id: plan.id })
    await makeMember(full.id)
    await makeDomain(full.id)
    await makeDomain(full.id)
    await makeProject({ plan_id: plan.id })
    const over = (body: object) => preview(plan.id, body).then(({ warnings }) => warnings.join(' '))
    assert.equal(await over({ max_users: 2, max_domains: 2 }), '')
    for (const body of [{ max_users: 1 }, { max_domains: 1 }, { max_users: 1, max_domains: 0 }]) {
      assert.match(
        await over(body),
        new RegExp(`allow: 1\\. .*project ${full.id} \\(2 domains, 2 members\\)\\.`),
      )
    }
    assert.match(await over({ max_users: 0 }), /allow: 2\./)
  })
})
