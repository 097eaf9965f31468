import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startApi } from '../testing/harness/api.ts'
import { CookieJar } from '../testing/harness/cookie-jar.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { bareEnvironment, callPostern } from '../testing/harness/postern-process.ts'

const database = await testDatabase()
const api = await startApi(database)

const resetPassword = (...args: string[]) =>
  callPostern(
    {
      ...bareEnvironment,
      POSTERN_DATABASE_URL: database.url,
      POSTERN_PUBLIC_URL: 'http://localhost:8080',
      POSTERN_AUTH_SECRETS: `1:${'test-secret-'.repeat(4)}`,
      POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
    },
    'users',
    'reset-password',
    ...args,
  )

describe('postern users reset-password', () => {
  test('prints a link that sets the password, grants no role, and is in the audit log', async () => {
    const { email, userId } = await api.makeAdmin()
    await database.query(`update control.users set role = 'user' where id = $1`, [userId])
    const made = await resetPassword('--email', email, '--reason', 'Called by phone', '--json')
    assert.equal(made.status, 0, made.stderr)
    const { link, expires_in } = JSON.parse(made.stdout)
    assert.equal(expires_in, 86_400)
    const { origin, pathname, hash } = new URL(link)
    assert.deepEqual([origin, pathname], ['http://localhost:8080', '/app/reset-password'])
    const body = { token: hash.slice(1), new_password: 'a much better password' }
    assert.equal((await new CookieJar(api.url).post('/v1/auth/password/reset', body)).status, 204)
    assert.equal((await new CookieJar(api.url).post('/v1/auth/password/reset', body)).status, 404)
    const [row] = await database.query(
      `select users.role, audit.operation, audit.actor_kind, audit.actor_id::int, audit.reason
         from control.users as users join control.audit as audit on audit.resource_id = users.id::text
        where users.id = $1 and audit.resource_type = 'user' order by audit.seq desc limit 1`,
      [userId],
    )
    const operation = 'users.reset-password'
    assert.deepEqual(row, {
      role: 'user',
      operation,
      actor_kind: 'shell',
      actor_id: 0,
      reason: 'Called by phone',
    })
  })

  test('fails with 2 for disabled and unknown users', async () => {
    const { email, userId } = await api.makeAdmin()
    await database.query('update control.users set is_active = false where id = $1', [userId])
    const disabled = await resetPassword('--email', email)
    assert.deepEqual([disabled.status, disabled.stdout], [2, ''])
    assert.match(disabled.stderr, /disabled/)
    const unknown = await resetPassword('--email', 'no.one@example.com')
    assert.deepEqual([unknown.status, unknown.stdout], [2, ''])
  })
})
