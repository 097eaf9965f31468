import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures, planConfiguration } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makePlan, makeProject } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const edit = (id: number, body: object) => admin.patch(`/plans/${id}`, body)

describe('plans.edit', () => {
  test('changes each field separately, without a reason', async () => {
    const changes = {
      name: 'Renamed',
      description: '',
      support_level: 'community',
      max_domains: 0,
      max_users: Number.MAX_SAFE_INTEGER,
      max_mails_per_day: 1,
      max_mails_per_month: 2 ** 40,
      billing_product_id: 'prod_2',
      price: 0.07,
      is_active: false,
    }
    assert.deepEqual(Object.keys(changes), Object.keys(planConfiguration))
    for (const [field, value] of Object.entries(changes)) {
      const before = await makePlan({ name: 'Plan' })
      const answer = await edit(before.id, { [field]: value })
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual(answer.body, { ...before, [field]: value, updated_at: answer.body.updated_at })
      assert.equal(answer.headers.get('etag'), '"2"')
      assert.deepEqual((await admin.get(`/plans/${before.id}`)).body, answer.body)
      await assertAudited(answer, {
        operation: 'plans.edit',
        resource: ['plan', before.id],
        before: planConfiguration,
        after: { ...planConfiguration, [field]: value },
      })
    }
  })

  test('clears the billing product with null, and records a reason', async () => {
    const { id } = await makePlan({ name: 'Plan', billing_product_id: 'prod_1' })
    const answer = await edit(id, { billing_product_id: null, reason: 'No longer sold' })
    assert.equal(answer.body.billing_product_id, null)
    await assertAudited(answer, {
      operation: 'plans.edit',
      resource: ['plan', id],
      reason: 'No longer sold',
      before: { ...planConfiguration, billing_product_id: 'prod_1' },
      after: planConfiguration,
    })
  })

  test('keeps the version and writes no audit row if nothing changes', async () => {
    const plan = await makePlan({ price: 19.99 })
    for (const body of [
      {},
      { price: 19.99 },
      { name: ` ${plan.name} `, max_users: plan.max_users, reason: 'x' },
    ]) {
      const answer = await edit(plan.id, body)
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual(answer.body, plan)
      assert.equal(answer.headers.get('etag'), '"1"')
      await assertNotAudited(answer)
    }
  })

  test('rejects invalid values', async () => {
    const plan = await makePlan()
    const bodies = [
      { price: 1.001 },
      { price: -1 },
      { price: 1e10 },
      { max_users: 2 ** 53 },
      { max_domains: -1 },
      { max_mails_per_day: 0.5 },
      { name: ' ' },
      { support_level: 'none' },
      { is_active: null },
      { billing_product_id: '' },
      { id: 1 },
      { created_at: plan.created_at },
    ]
    for (const body of bodies) {
      const answer = await edit(plan.id, body)
      assertProblem(answer, 422, 'validation_failed')
      await assertNotAudited(answer)
    }
    assert.deepEqual((await admin.get(`/plans/${plan.id}`)).body, plan)
  })

  test('applies immediately to every project on the plan, without changing the projects', async () => {
    const plan = await makePlan()
    const project = await makeProject({ plan_id: plan.id })
    const { body: after } = await edit(plan.id, { max_users: 3, price: 12.34 })
    const shown = await admin.get(`/projects/${project.id}`)
    assert.deepEqual(shown.body, { ...project, plan: after })
    assert.equal(shown.headers.get('etag'), '"1"')
  })

  test('to inactive keeps it assigned to its projects, and it can be newly assigned once it is active again', async () => {
    const plan = await makePlan()
    const [on, other] = [await makeProject({ plan_id: plan.id }), await makeProject()]
    assert.equal((await edit(plan.id, { is_active: false })).status, 200)
    const shown = (await admin.get(`/projects/${on.id}`)).body
    assert.deepEqual([shown.plan_id, shown.plan.id, shown.plan.is_active], [plan.id, plan.id, false])
    const move = () => admin.patch(`/projects/${other.id}`, { plan_id: plan.id })
    assertProblem(await move(), 422, 'plan_inactive')
    assert.equal((await edit(plan.id, { is_active: true })).status, 200)
    assert.equal((await move()).status, 200)
  })

  test("below a project's usage removes nothing from the project", async () => {
    const plan = await makePlan()
    const project = await makeProject({ plan_id: plan.id })
    assert.equal((await edit(plan.id, { max_users: 0 })).status, 200)
    assert.equal((await admin.get(`/projects/${project.id}/members`)).body.data.length, 1)
  })

  test('by concurrent requests loses no field and no audit row', async () => {
    const { id } = await makePlan()
    const fields = ['max_domains', 'max_users', 'max_mails_per_day', 'max_mails_per_month'] as const
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => edit(id, { [fields[n % 4] ?? '']: 5000 + n })),
    )
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    const shown = await admin.get(`/plans/${id}`)
    assert.equal(shown.headers.get('etag'), '"21"')
    const chain = await database.query<{ before: object; after: object }>(
      `select before, after from control.audit
        where resource_type = 'plan' and resource_id = $1 and operation = 'plans.edit' order by seq`,
      [String(id)],
    )
    assert.equal(chain.length, 20)
    // Each row starts with the state in which the previous row ended.
    for (const [n, row] of chain.entries()) if (n > 0) assert.deepEqual(row.before, chain[n - 1]?.after)
    assert.deepEqual({ ...shown.body, ...chain.at(-1)?.after }, shown.body)
  })

  test('returns 404 for a missing plan', async () => {
    assertProblem(await edit(999_999_999, { price: 1 }), 404, 'not_found')
  })
})
