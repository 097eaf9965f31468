import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertEachRowOnce, assertStrictPaging, readAllPages } from '../../testing/expectations/pages.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { insertPlans } from '../../testing/fixtures/plan-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makePlan } = fixtures(database, admin)

/** Inserted with SQL, because that many requests would take most of the test's time. */
async function addMany(count: number): Promise<number[]> {
  const rows = await database.query<{ id: string }>(
    `${insertPlans({ name: `'Bulk ' || n` }, 'from generate_series(1, $1) as n')} returning id`,
    [count],
  )
  return rows.map(({ id }) => Number(id))
}

describe('plans.list', () => {
  test('returns an empty list before there is a plan', async () => {
    assert.deepEqual((await admin.get('/plans')).body, { data: [], next_cursor: null })
  })

  test('returns each plan as plans.show does, oldest first', async () => {
    const [first, second] = [await makePlan({ price: 0.07 }), await makePlan({ is_active: false })]
    assert.deepEqual((await admin.get('/plans')).body, { data: [first, second], next_cursor: null })
  })

  test('filters active and inactive plans on every page', async () => {
    const [active, inactive] = [await makePlan(), await makePlan({ is_active: false })]
    const all = await readAllPages(admin, '/plans')
    for (const [is_active, one, other] of [
      ['true', active, inactive],
      ['false', inactive, active],
    ] as const) {
      const found = await readAllPages<typeof active>(admin, '/plans', { is_active, limit: '1' })
      assert.deepEqual(new Set(found.map((plan) => String(plan.is_active))), new Set([is_active]))
      const ids = found.map(({ id }) => id)
      assert.ok(ids.includes(one.id) && !ids.includes(other.id))
      assert.ok(found.length < all.length)
    }
  })

  test('returns each plan once at any page size, while plans are added', async () => {
    const ids = await addMany(250)
    await assertEachRowOnce(admin, '/plans', ids, () => addMany(1))
  })

  test('rejects invalid cursors, limits and filters', async () => {
    const [lastId = 0] = await addMany(1)
    await assertStrictPaging(admin, '/plans', lastId)
    for (const query of ['is_active=1', 'is_active=', 'is_active=True', 'active=true', 'q=Bulk']) {
      assertProblem(await admin.get(`/plans?${query}`), 400, 'invalid_parameter')
    }
  })
})
