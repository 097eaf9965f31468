import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Db } from '../../../platform/db/db.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { CookieJar } from '../../../testing/harness/cookie-jar.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { resetAdministrator } from './administrators.ts'

const database = await testDatabase()
const api = await startApi(database)
const { auth, db } = api.context

test('an interrupted reset never leaves an administrator with the old credentials', async () => {
  const admin = await api.makeAdmin()
  // Fails after the audit row is written and before the admin role is granted.
  let transactions = 0
  const cut: Db = {
    ...db.admin,
    transaction: (work) =>
      ++transactions === 1 ? db.admin.transaction(work) : Promise.reject(new Error('power failure')),
  }
  const deps = { auth, adminDb: cut, identityDb: db.identity }
  await assert.rejects(resetAdministrator(deps, admin.email), /power failure/)
  const { email, password } = admin
  const answer = await new CookieJar(api.url).post('/v1/auth/sign-in', { email, password })
  assert.equal(answer.status, 401)

  const again = await resetAdministrator({ ...deps, adminDb: db.admin }, email)
  const browser = new CookieJar(api.url)
  assert.equal((await browser.post('/v1/auth/sign-in', { email, password: again.password })).status, 200)
})

test('a reset makes the user an active administrator and invalidates every earlier token', async () => {
  const admin = await api.makeAdmin()
  const before = await api.tokenOf(admin.email)
  await database.query(`update control.users set role = 'user', is_active = false where id = $1`, [
    admin.userId,
  ])
  await database.query(
    `insert into control.external_logins (issuer, subject, user_id) values ('https://issuer.example', 'thief', $1)`,
    [admin.userId],
  )
  await resetAdministrator({ auth, adminDb: db.admin, identityDb: db.identity }, admin.email)
  assert.deepEqual(
    await database.query('select from control.external_logins where user_id = $1', [admin.userId]),
    [],
  )
  const authenticate = (token: string) =>
    fetch(`${api.url}/v1/admin/x`, { headers: { authorization: `Bearer ${token}` } })
  assert.equal((await authenticate(before)).status, 401)
  assert.equal((await authenticate(await api.tokenOf(admin.email))).status, 404)
})

test('a reset keeps the rights of an administrator unless others are given', async () => {
  const deps = { auth, adminDb: db.admin, identityDb: db.identity }
  const { email, userId } = await api.grantAdmin('support')
  const rights = async () =>
    (await database.query<{ rights: string }>('select rights from control.users where id = $1', [userId]))[0]
      ?.rights
  await resetAdministrator(deps, email)
  assert.equal(await rights(), 'support')
  await resetAdministrator(deps, email, 'full')
  assert.equal(await rights(), 'full')
  const entries = await database.query<{ before: object; after: object }>(
    `select before, after from control.audit where operation = 'users.reset' and resource_id = $1 order by id`,
    [String(userId)],
  )
  const admin = { role: 'admin', is_active: true }
  assert.deepEqual(entries, [
    { before: { ...admin, rights: 'support' }, after: { ...admin, rights: 'support' } },
    { before: { ...admin, rights: 'support' }, after: { ...admin, rights: 'full' } },
  ])
})
