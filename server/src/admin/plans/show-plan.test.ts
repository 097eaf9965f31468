import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makePlan } = fixtures(database, admin)
const { assertNotAudited } = auditOf(database, admin)

describe('plans.show', () => {
  test('returns the created resource with its version in the ETag, and writes no audit row', async () => {
    const plan = await makePlan({ billing_product_id: 'prod_1', price: 4.35 })
    const answer = await admin.get(`/plans/${plan.id}`)
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, plan)
    assert.equal(answer.headers.get('etag'), '"1"')
    await assertNotAudited(answer)
    await admin.patch(`/plans/${plan.id}`, { price: 5 })
    assert.equal((await admin.get(`/plans/${plan.id}`)).headers.get('etag'), '"2"')
  })

  test('also returns an inactive plan', async () => {
    const plan = await makePlan({ is_active: false })
    assert.deepEqual((await admin.get(`/plans/${plan.id}`)).body, plan)
  })

  test('returns 404 for a missing plan, and 400 for an invalid identifier', async () => {
    for (const id of ['0', '999999999', String(Number.MAX_SAFE_INTEGER)]) {
      assertProblem(await admin.get(`/plans/${id}`), 404, 'not_found')
    }
    for (const id of ['-1', '1e3', '01', '9007199254740992', 'free']) {
      assertProblem(await admin.get(`/plans/${id}`), 400, 'invalid_parameter')
    }
  })
})
