import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApi } from '../testing/harness/api.ts'
import { CookieJar } from '../testing/harness/cookie-jar.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { totpCode } from '../testing/harness/totp.ts'

const database = await testDatabase()
const api = await startApi(database)

test('while the database is unavailable, every operation on the signin plane returns 503 and tells the caller to try again', async () => {
  const admin = await api.makeAdmin()
  const browser = new CookieJar(api.url)
  const { email, password } = admin
  await browser.post('/v1/auth/sign-in', { email, password })
  await browser.post('/v1/auth/totp/code', { code: totpCode(admin.totpUri) })

  const [{ name } = { name: '' }] = await database.query<{ name: string }>(
    'select current_database() as name',
  )
  await database.query(`alter database ${name} connection limit 0`)
  await database.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where usename = $1 and datname = $2',
    ['postern_app', name],
  )
  const answers: Record<string, Response> = {
    'sign-in': await browser.post('/v1/auth/sign-in', { email, password }),
    'totp/code': await browser.post('/v1/auth/totp/code', { code: '123456' }),
    'backup-code': await browser.post('/v1/auth/backup-code', { code: 'x' }),
    token: await browser.post('/v1/auth/token'),
    session: await browser.fetch('/v1/auth/session'),
    sessions: await browser.fetch('/v1/auth/sessions'),
    password: await browser.post('/v1/auth/password', {
      current_password: password,
      new_password: 'x'.repeat(12),
    }),
    totp: await browser.post('/v1/auth/totp', { password }),
    'jwks.json': await browser.fetch('/v1/auth/jwks.json'),
    'sign-out': await browser.post('/v1/auth/sign-out'),
  }
  for (const [path, answer] of Object.entries(answers)) {
    const { error } = (await answer.json()) as { error: string }
    assert.deepEqual([answer.status, error], [503, 'unavailable'], path)
  }

  await database.query(`alter database ${name} connection limit -1`)
  assert.equal((await browser.fetch('/v1/auth/session')).status, 200)
})
