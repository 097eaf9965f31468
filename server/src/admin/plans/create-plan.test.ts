import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { planConfiguration } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const create = (change: object = {}) => admin.post('/plans', { ...planConfiguration, ...change })
const limits = ['max_domains', 'max_users', 'max_mails_per_day', 'max_mails_per_month'] as const

describe('plans.create', () => {
  test('creates the plan and writes an audit row to chain 0', async () => {
    const configuration = {
      name: 'Business',
      description: 'For teams that send every day.\nWith a second line.',
      support_level: 'priority',
      max_domains: 50,
      max_users: 25,
      max_mails_per_day: 50_000,
      max_mails_per_month: 1_000_000,
      billing_product_id: 'prod_business',
      price: 149.5,
      is_active: true,
    }
    const answer = await admin.post('/plans', configuration)
    assert.equal(answer.status, 201, answer.text)
    const { id, created_at, updated_at, ...rest } = answer.body
    assert.deepEqual(rest, configuration)
    assert.equal(created_at, updated_at)
    assert.equal(answer.headers.get('location'), `/v1/admin/plans/${id}`)
    assert.equal(answer.headers.get('etag'), '"1"')
    assert.deepEqual((await admin.get(`/plans/${id}`)).body, answer.body)
    await assertAudited(answer, { operation: 'plans.create', resource: ['plan', id], after: configuration })
  })

  test('records a reason', async () => {
    const answer = await create({ name: 'Of winter', reason: 'Winter offer' })
    await assertAudited(answer, {
      operation: 'plans.create',
      resource: ['plan', answer.body.id],
      reason: 'Winter offer',
      after: { ...planConfiguration, name: 'Of winter' },
    })
  })

  test('accepts prices with up to two decimals unchanged', async () => {
    for (const price of [
      0, 0.01, 0.07, 0.1, 0.29, 1.1, 4.35, 19.99, 100, 1e2, 1234567.89, 9_999_999_999.99,
    ]) {
      const { status, body } = await create({ price })
      assert.deepEqual([status, body.price], [201, price])
      assert.equal((await admin.get(`/plans/${body.id}`)).body.price, price)
    }
  })

  test('rejects prices with more decimals, negative and too large prices', async () => {
    for (const price of [
      0.001,
      0.005,
      1.999,
      19.990001,
      1e-7,
      -0.01,
      -1,
      1e10,
      9_999_999_999.995,
      '10',
      null,
    ]) {
      const answer = await create({ price })
      assertProblem(answer, 422, 'validation_failed')
      await assertNotAudited(answer)
    }
  })

  test('accepts limits from 0 to the largest safe JSON integer', async () => {
    for (const limit of [0, 1, 2 ** 31, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER]) {
      const change = Object.fromEntries(limits.map((name) => [name, limit]))
      const answer = await create(change)
      assert.equal(answer.status, 201, answer.text)
      assert.deepEqual({ ...answer.body, ...change }, answer.body)
      await assertAudited(answer, {
        operation: 'plans.create',
        resource: ['plan', answer.body.id],
        after: { ...planConfiguration, ...change },
      })
    }
  })

  test('rejects a limit that is negative, too large, not an integer or missing', async () => {
    for (const name of limits) {
      for (const limit of [-1, 2 ** 53, 2 ** 63, 1.5, '10', null, true]) {
        const answer = await create({ [name]: limit })
        assertProblem(answer, 422, 'validation_failed')
        assert.ok(answer.body.message.includes(`"${name}"`), answer.text)
      }
    }
  })

  test('accepts exactly the known support levels', async () => {
    for (const support_level of ['community', 'email', 'priority']) {
      assert.equal((await create({ support_level })).body.support_level, support_level)
    }
    for (const support_level of ['Email', '', 'phone', null, 1]) {
      assertProblem(await create({ support_level }), 422, 'validation_failed')
    }
  })

  test('accepts an empty description and a null billing product, but not an empty one', async () => {
    const { status, body } = await create({ description: '', billing_product_id: null })
    assert.deepEqual([status, body.description, body.billing_product_id], [201, '', null])
    assertProblem(await create({ billing_product_id: '' }), 422, 'validation_failed')
    assertProblem(await create({ description: 'x'.repeat(2001) }), 422, 'validation_failed')
    assertProblem(await create({ description: null }), 422, 'validation_failed')
  })

  test('trims the name, and rejects empty and unprintable names', async () => {
    assert.equal((await create({ name: '\tSmall ' })).body.name, 'Small')
    for (const name of ['', ' ', 'a\u0000b', 'a\nb', 'x'.repeat(101)]) {
      assertProblem(await create({ name }), 422, 'validation_failed')
    }
  })

  test('requires every field', async () => {
    for (const field of Object.keys(planConfiguration)) {
      const answer = await create({ [field]: undefined })
      assertProblem(answer, 422, 'validation_failed')
      assert.ok(answer.body.message.includes(field), answer.text)
    }
  })
})
