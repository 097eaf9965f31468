import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const { admin, make, ownProject, member, stranger } = await customers(api, database)

describe('projects.show by a customer', () => {
  test("shows the caller's role and the plan in force", async () => {
    const { owner, project } = await ownProject()
    const path = `/projects/${project.id}`
    const larger = await make.makePlan({ name: 'Larger', max_mails_per_day: 4711 })
    const reason = 'More mail for a month'
    assert.equal((await admin.patch(path, { admin_plan_id: larger.id, reason })).status, 200)

    const { body } = await owner.get(path)
    const {
      name,
      description,
      support_level,
      max_domains,
      max_users,
      max_mails_per_day,
      max_mails_per_month,
    } = larger
    assert.deepEqual(body.plan, {
      ...{ id: larger.id, name, description, support_level },
      ...{ max_domains, max_users, max_mails_per_day, max_mails_per_month },
    })
    assert.deepEqual([body.role, body.is_locked, body.user_id], ['owner', false, owner.user.id])
    const viewer = await member(project.id, 'viewer')
    assert.deepEqual((await viewer.get(path)).body, { ...body, role: 'viewer' })
    assertProblem(await (await stranger()).get(path), 404, 'not_found')
  })

  test('hides overrides and everything that concerns billing', async () => {
    const { owner, project } = await ownProject()
    const path = `/projects/${project.id}`
    const billing = {
      billing_subscription_id: 'sub_canary',
      billing_subscription_status: 'active',
      billing_product_id: 'prod_canary',
    }
    assert.equal((await admin.put(`${path}/billing`, billing)).status, 200)
    for (const text of [(await owner.get(path)).text, (await owner.get('/projects')).text]) {
      assert.doesNotMatch(text, /admin_|billing|canary|price|"plan_id"/)
    }
  })
})
