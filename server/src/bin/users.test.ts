import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startApi } from '../testing/harness/api.ts'
import { CookieJar } from '../testing/harness/cookie-jar.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { bareEnvironment, callPostern } from '../testing/harness/postern-process.ts'
import { totpCode } from '../testing/harness/totp.ts'

const database = await testDatabase()
const api = await startApi(database)

const environment = {
  ...bareEnvironment,
  POSTERN_DATABASE_URL: database.url,
  POSTERN_PUBLIC_URL: 'http://localhost:8080',
  POSTERN_AUTH_SECRETS: `1:${'test-secret-'.repeat(4)}`,
  POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
}
const resetPassword = (...args: string[]) => callPostern(environment, 'users', 'reset-password', ...args)
const resetSecondFactor = (...args: string[]) =>
  callPostern(environment, 'users', 'reset-second-factor', ...args)

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

describe('postern users reset-second-factor', () => {
  test('lets a customer sign in with the password alone, and ends sessions, challenges and tokens', async () => {
    const { email, password, userId, totpUri } = await api.makeAdmin()
    const old = new CookieJar(api.url)
    await old.post('/v1/auth/sign-in', { email, password })
    assert.equal((await old.post('/v1/auth/totp/code', { code: totpCode(totpUri) })).status, 204)
    const token = await api.tokenOf(email)
    await database.query(`update control.users set role = 'user' where id = $1`, [userId])
    const statusWith = async (bearer: string) =>
      (await fetch(`${api.url}/v1/projects`, { headers: { authorization: `Bearer ${bearer}` } })).status
    assert.equal(await statusWith(token), 200)
    await database.query(
      `insert into control.passkeys (user_id, name, credential_id, public_key, counter, device_type, backed_up)
       values ($1, 'Phone', 'lost', 'key', 0, 'singleDevice', false)`,
      [userId],
    )
    const pending = new CookieJar(api.url)
    const first = await pending.post('/v1/auth/sign-in', { email, password })
    assert.deepEqual(await first.json(), { second_factor_required: true })

    const args = ['--email', email, '--reason', 'Lost phone, called back']
    const done = await resetSecondFactor(...args, '--json')
    assert.equal(done.status, 0, done.stderr)
    assert.deepEqual(JSON.parse(done.stdout), { email })

    assert.equal((await old.fetch('/v1/auth/session')).status, 401)
    const code = totpCode(totpUri, Date.now() + 30_000)
    assert.equal((await pending.post('/v1/auth/totp/code', { code })).status, 401)
    assert.equal(await statusWith(token), 401)
    const browser = new CookieJar(api.url)
    const signedIn = await browser.post('/v1/auth/sign-in', { email, password })
    assert.deepEqual([signedIn.status, await signedIn.json()], [200, { second_factor_required: false }])
    const { data } = (await (await browser.fetch('/v1/auth/passkeys')).json()) as { data: unknown[] }
    assert.deepEqual(data, [])
    const activity = (await (await browser.fetch('/v1/auth/activity')).json()) as {
      data: { operation: string; actor: { type: string } }[]
    }
    const entry = activity.data.find(({ operation }) => operation === 'users.reset-second-factor')
    assert.equal(entry?.actor.type, 'system')
    const [row] = await database.query(
      `select operation, actor_kind, actor_id::int, reason, before->'two_factor_enabled' as before,
              after->'two_factor_enabled' as after
         from control.audit where resource_type = 'user' and resource_id = $1 order by seq desc limit 1`,
      [String(userId)],
    )
    assert.deepEqual(row, {
      operation: 'users.reset-second-factor',
      actor_kind: 'shell',
      actor_id: 0,
      reason: 'Lost phone, called back',
      before: true,
      after: false,
    })
    const again = await resetSecondFactor(...args)
    assert.deepEqual([again.status, again.stdout], [2, ''])
    assert.match(again.stderr, /has no authenticator/)
  })

  test('fails with 2 and changes nothing for administrators, unknown users and without a reason', async () => {
    const { email, userId } = await api.makeAdmin()
    const reason = ['--reason', 'Lost phone']
    const refused = await resetSecondFactor('--email', email, ...reason)
    assert.deepEqual([refused.status, refused.stdout], [2, ''])
    assert.match(refused.stderr, new RegExp(`postern admin reset --email ${email}`))
    const unknown = await resetSecondFactor('--email', 'no.one@example.com', ...reason)
    assert.deepEqual([unknown.status, unknown.stdout], [2, ''])
    assert.match(unknown.stderr, /There is no user/)
    for (const args of [[], ['--reason', ' ']]) {
      assert.equal((await resetSecondFactor('--email', email, ...args)).status, 2)
    }
    const [{ count } = {}] = await database.query<{ count: number }>(
      `select count(*)::int as count from control.two_factors where user_id = $1`,
      [userId],
    )
    assert.equal(count, 1)
    assert.deepEqual(
      await database.query(
        `select from control.audit where operation = 'users.reset-second-factor' and resource_id = $1`,
        [String(userId)],
      ),
      [],
    )
  })
})
