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
const { makePolicy } = fixtures(database, admin)
const { assertNotAudited } = auditOf(database, admin)

describe('policies.show', () => {
  test('returns the created resource with its version in the ETag, and writes no audit row', async () => {
    const policy = await makePolicy({ threshold: 0.07 })
    const answer = await admin.get(`/policies/${policy.id}`)
    assert.deepEqual(answer.body, policy)
    assert.equal(answer.headers.get('etag'), '"1"')
    await assertNotAudited(answer)
  })

  test('returns 404 for a missing policy, and 400 for an invalid identifier', async () => {
    for (const id of ['0', '999999999', String(Number.MAX_SAFE_INTEGER)])
      assertProblem(await admin.get(`/policies/${id}`), 404, 'not_found')
    for (const id of ['-1', '1e3', '01', '9007199254740992', 'off'])
      assertProblem(await admin.get(`/policies/${id}`), 400, 'invalid_parameter')
  })
})
