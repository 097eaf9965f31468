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
const { makeUser } = fixtures(database, admin)
const { assertNotAudited } = auditOf(database, admin)

describe('users.show', () => {
  test('returns a user without credentials, with the version in the ETag', async () => {
    const user = await makeUser({ is_active: false })
    const answer = await admin.get(`/users/${user.id}`)
    assert.equal(answer.status, 200)
    const { created_at, updated_at } = answer.body
    assert.deepEqual(answer.body, {
      ...user,
      ...{ rights: null, two_factor_enabled: false, created_at, updated_at },
    })
    assert.deepEqual(Object.keys(answer.body), [
      'id',
      'email',
      'name',
      'role',
      'rights',
      'is_active',
      'two_factor_enabled',
      'created_at',
      'updated_at',
    ])
    assert.equal(answer.headers.get('etag'), '"1"')
    await assertNotAudited(answer)
  })

  test('shows who has two-factor authentication enabled', async () => {
    const { email, userId } = await api.makeAdmin()
    const { body } = await admin.get(`/users/${userId}`)
    assert.deepEqual([body.email, body.role, body.two_factor_enabled], [email, 'admin', true])
    assert.equal(body.rights, 'full')
    const appointed = await admin.get(`/users/${admin.userId}`)
    assert.equal(appointed.body.two_factor_enabled, false)
  })

  test('returns 404 for a missing user, and 400 for an invalid identifier', async () => {
    for (const id of ['0', '999999999', String(Number.MAX_SAFE_INTEGER)]) {
      assertProblem(await admin.get(`/users/${id}`), 404, 'not_found')
    }
    for (const id of ['-1', '1e3', '01', 'me', '9007199254740992']) {
      assertProblem(await admin.get(`/users/${id}`), 400, 'invalid_parameter')
    }
  })
})
