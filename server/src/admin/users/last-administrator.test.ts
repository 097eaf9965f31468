import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

/** In a separate database, because the number of administrators matters here. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeUser } = fixtures(database, admin)
const { assertNotAudited } = auditOf(database, admin)

const reason = 'To test the rejection'
const edit = (id: number, body: object) => admin.patch(`/users/${id}`, { ...body, reason })

const countAdministrators = async (): Promise<number> =>
  (
    await database.query<{ n: number }>(
      "select count(*)::int as n from control.users where role = 'admin' and is_active",
    )
  )[0]?.n ?? 0

describe('users.edit: the last administrator', () => {
  test('cannot be demoted or disabled', async () => {
    await makeUser()
    await makeUser({ role: 'admin', is_active: false })
    for (const body of [{ role: 'user' }, { is_active: false }, { role: 'user', is_active: false }]) {
      const answer = await edit(admin.userId, body)
      assertProblem(answer, 409, 'last_administrator')
      await assertNotAudited(answer)
    }
    assert.equal((await admin.get('/plans')).status, 200)
  })

  test('can be demoted if there is another administrator', async () => {
    const other = await makeUser({ role: 'admin' })
    assert.equal((await edit(other.id, { role: 'user' })).status, 200)
    assertProblem(await edit(admin.userId, { role: 'user' }), 409, 'last_administrator')
    assert.equal((await edit(other.id, { role: 'admin' })).status, 200)
    assert.equal((await edit(other.id, { is_active: false })).status, 200)
    assertProblem(await edit(admin.userId, { is_active: false }), 409, 'last_administrator')
  })

  test('is the last one with two-factor authentication: others get no access token and do not count', async () => {
    await database.query('update control.users set two_factor_enabled = true where id = $1', [admin.userId])
    const other = await makeUser({ role: 'admin' })
    for (const body of [{ role: 'user' }, { is_active: false }]) {
      const answer = await edit(admin.userId, body)
      assertProblem(answer, 409, 'last_administrator')
      assert.match(answer.body.message, /two-factor authentication/)
      await assertNotAudited(answer)
    }
    assert.equal((await edit(other.id, { role: 'user' })).status, 200, 'the other one can be demoted')
    assert.equal((await edit(other.id, { role: 'admin' })).status, 200)
    await database.query('update control.users set two_factor_enabled = true where id = $1', [other.id])
    assert.equal((await edit(admin.userId, { is_active: false })).status, 200)
    await database.query(
      'update control.users set is_active = true, two_factor_enabled = false, token_generation = 1 where id = $1',
      [admin.userId],
    )
    await database.query(`update control.users set role = 'user' where id = $1`, [other.id])
  })

  test('is the last one with full rights: administrators with other rights do not count', async () => {
    const other = await makeUser({ role: 'admin' })
    for (const rights of ['support', 'billing', 'auditor']) {
      assert.equal((await edit(other.id, { rights })).status, 200)
      for (const body of [{ rights: 'support' }, { role: 'user' }, { is_active: false }]) {
        const answer = await edit(admin.userId, body)
        assertProblem(answer, 409, 'last_administrator')
        assert.match(answer.body.message, /full rights/)
      }
    }
    // With two-factor authentication, but without full rights.
    await database.query('update control.users set two_factor_enabled = true where id = any($1)', [
      [admin.userId, other.id],
    ])
    assertProblem(await edit(admin.userId, { rights: 'auditor' }), 409, 'last_administrator')
    assert.equal((await edit(other.id, { is_active: false })).status, 200, 'others are not protected')
    assert.equal((await edit(other.id, { is_active: true, rights: 'full' })).status, 200)
    assert.equal((await edit(admin.userId, { rights: 'support' })).status, 200)
    assertProblem(
      await admin.patch(`/users/${admin.userId}`, { rights: 'full', reason }),
      403,
      'insufficient_rights',
    )
    await database.query(
      `update control.users set rights = 'full', two_factor_enabled = false, role = case id when $1 then 'admin' else 'user' end`,
      [admin.userId],
    )
  })

  test('remains even if administrators demote each other concurrently', async (t) => {
    const ring = [admin, await signedIn(api), await signedIn(api)]
    const rounds = 40
    let met = 0
    for (let round = 0; round < rounds; round++) {
      const present = round % 2 === 0 ? ring.slice(0, 2) : ring
      await database.query(
        `update control.users set role = case when id = any ($1) then 'admin' else 'user' end, is_active = true,
                                  token_generation = 1`,
        [present.map(({ userId }) => userId)],
      )
      const body = round % 4 < 2 ? { role: 'user', reason } : { is_active: false, reason }
      const answers = await Promise.all(
        present.map((one, n) => one.patch(`/users/${present[(n + 1) % present.length]?.userId}`, body)),
      )
      const left = await countAdministrators()
      const done = answers.filter(({ status }) => status === 200).length
      assert.ok(left >= 1, `no administrator is left in round ${round}`)
      assert.equal(left, present.length - done)
      for (const { status, body } of answers) {
        assert.ok([200, 401, 403, 409].includes(status), `${status} ${body.error}`)
        if (status === 409) assert.equal(body.error, 'last_administrator')
      }
      // Requests that are rejected while the lock is held: because they would remove the last administrator, or
      // because a concurrent request was processed first.
      met += answers.filter(
        ({ status, body }) => status === 409 || /no longer an administrator/.test(body.message),
      ).length
    }
    t.diagnostic(`rounds: ${rounds}, refused under the lock: ${met}`)
    assert.ok(met > 0, 'no requests were concurrent, so nothing was tested')
  })
})
