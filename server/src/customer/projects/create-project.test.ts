import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const closed = await startApi(database)
const plan = await fixtures(database, await signedIn(closed)).makePlan({ max_users: 3 })
const api = await startApi(database, { POSTERN_CUSTOMER_PLAN_ID: String(plan.id) })
const { admin, stranger, as, make } = await customers(api, database)

describe('projects.create by a customer', () => {
  test('creates a project that the caller owns, on the configured plan', async () => {
    const ada = await stranger()
    const answer = await ada.post('/projects', { name: '  Web shop ' })
    assert.equal(answer.status, 201, answer.text)
    const { id } = answer.body
    assert.equal(answer.headers.get('location'), `/v1/projects/${id}`)
    assert.equal(answer.headers.get('etag'), '"1"')

    const seen = await admin.get(`/projects/${id}`)
    assert.deepEqual(
      [answer.body.role, answer.body.user_id, answer.body.plan.id, answer.body.allow_service_mta],
      ['owner', ada.user.id, plan.id, true],
    )
    assert.deepEqual(
      [seen.body.name, seen.body.user_id, seen.body.plan_id, seen.body.reputation_score],
      ['Web shop', ada.user.id, plan.id, 100],
    )
    const { data } = (await ada.get(`/projects/${id}/members`)).body
    assert.deepEqual(
      data.map(({ user_id, email, role }: Record<string, unknown>) => [user_id, email, role]),
      [[ada.user.id, ada.user.email, 'owner']],
    )
    assert.deepEqual((await ada.get(`/projects/${id}`)).body, answer.body)
  })

  test('allows the MTAs of the operator if the operator has configured it', async () => {
    for (const allowed of [true, false]) {
      const { url } = await startApi(database, {
        POSTERN_CUSTOMER_PLAN_ID: String(plan.id),
        POSTERN_CUSTOMER_ALLOW_SERVICE_MTA: String(allowed),
      })
      const ada = await stranger()
      const here = new Client(url, ada.headers.authorization.slice('Bearer '.length), '/v1')
      const { body } = await here.post('/projects', { name: 'Shop' })
      assert.equal(body.allow_service_mta, allowed)
      const domain = { name: `shop-${body.id}.example`, mta_provider: 'service' }
      const added = await here.post(`/projects/${body.id}/domains`, domain)
      assert.equal(added.status, allowed ? 201 : 422, added.text)
      if (!allowed) assertProblem(added, 422, 'provider_not_allowed')
    }
  })

  test('accepts only a name', async () => {
    const ada = await stranger()
    for (const field of ['user_id', 'plan_id', 'allow_service_mta', 'is_locked', 'admin_plan_id']) {
      assertProblem(await ada.post('/projects', { name: 'Shop', [field]: 1 }), 422, 'validation_failed')
    }
    assertProblem(await ada.post('/projects', { name: '   ' }), 422, 'validation_failed')
    assertProblem(await ada.post('/projects', {}), 422, 'validation_failed')
    assert.deepEqual((await ada.get('/projects')).body.data, [])
  })

  test('creates one project per Idempotency-Key per user', async () => {
    const [ada, grace] = [await stranger(), await stranger()]
    const headers = { 'idempotency-key': 'one-shop' }
    const first = await ada.post('/projects', { name: 'Shop' }, headers)
    const again = await ada.post('/projects', { name: 'Shop' }, headers)
    assert.deepEqual([again.status, again.text], [201, first.text])
    assert.equal(again.headers.get('idempotent-replayed'), 'true')
    assertProblem(await ada.post('/projects', { name: 'Other' }, headers), 422, 'idempotency_key_reused')
    const hers = await grace.post('/projects', { name: 'Shop' }, headers)
    assert.notEqual(hers.body.id, first.body.id)
    assert.equal((await ada.get('/projects')).body.data.length, 1)
  })

  test('is rejected without a configured plan, and the error says who can create projects', async () => {
    const ada = await stranger()
    const here = new Client(closed.url, ada.headers.authorization.slice('Bearer '.length), '/v1')
    const answer = await here.post('/projects', { name: 'Shop' })
    assertProblem(answer, 403, 'insufficient_role')
    assert.match(answer.body.message, /administrator/)
  })

  test('is rejected when the plan is inactive', async () => {
    const ada = await stranger()
    assert.equal((await admin.patch(`/plans/${plan.id}`, { is_active: false })).status, 200)
    assertProblem(await ada.post('/projects', { name: 'Shop' }), 422, 'plan_inactive')
    assert.equal((await admin.patch(`/plans/${plan.id}`, { is_active: true })).status, 200)
  })

  test('is rejected for a disabled user', async () => {
    const disabled = await as(await make.makeUser({ is_active: false }))
    assertProblem(await disabled.post('/projects', { name: 'Shop' }), 401, 'unauthenticated')
  })
})
