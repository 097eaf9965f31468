import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Db } from '../../../platform/db/db.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { CookieJar } from '../../../testing/harness/cookie-jar.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { totpCode } from '../../../testing/harness/totp.ts'
import { findExternalUser } from './access.sql.ts'
import {
  linkAdministrator,
  resetAdministrator,
  resetSecondFactor,
  unlinkAdministrator,
} from './administrators.ts'

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

const operationsAbout = async (userId: number) =>
  (
    await database.query<{ operation: string }>(
      `select operation from control.audit where resource_type = 'user' and resource_id = $1 order by seq`,
      [String(userId)],
    )
  ).map(({ operation }) => operation)

describe('resetting a second factor', () => {
  const reason = 'Lost phone'

  test('is in the audit log even if it is interrupted, and can be repeated', async () => {
    const { email, userId, password } = await api.makeAdmin()
    await database.query(`update control.users set role = 'user' where id = $1`, [userId])
    const cut: Db = {
      ...db.identity,
      transaction: () => Promise.reject(new Error('power failure')),
    }
    const deps = { adminDb: db.admin, identityDb: cut, reason }
    await assert.rejects(resetSecondFactor(deps, email), /power failure/)
    assert.equal((await operationsAbout(userId)).at(-1), 'users.reset-second-factor')
    const signIn = async () =>
      (await new CookieJar(api.url).post('/v1/auth/sign-in', { email, password })).json()
    assert.deepEqual(await signIn(), { second_factor_required: true })
    await resetSecondFactor({ ...deps, identityDb: db.identity }, email)
    assert.deepEqual(await signIn(), { second_factor_required: false })
  })

  test('does not remove that of a user who has become an administrator meanwhile', async () => {
    const { email, userId } = await api.makeAdmin()
    await database.query(`update control.users set role = 'user' where id = $1`, [userId])
    const promoted: Db = {
      ...db.identity,
      async transaction(work) {
        await database.query(`update control.users set role = 'admin' where id = $1`, [userId])
        return db.identity.transaction(work)
      },
    }
    const deps = { adminDb: db.admin, identityDb: promoted, reason }
    await assert.rejects(resetSecondFactor(deps, email), /is an administrator/)
    const [row] = await database.query('select two_factor_enabled from control.users where id = $1', [userId])
    assert.deepEqual(row, { two_factor_enabled: true })
  })
})

describe('unlinking from an issuer', () => {
  const [issuer, subject] = ['https://issuer.example', 'ada-7f3c']
  const deps = { auth, adminDb: db.admin, identityDb: db.identity, reason: 'Left the company' }

  test('removes the link, ends sessions and tokens, and is in the audit log and the activity', async () => {
    const { email, password, userId, totpUri } = await api.makeAdmin()
    const browser = new CookieJar(api.url)
    await browser.post('/v1/auth/sign-in', { email, password })
    assert.equal((await browser.post('/v1/auth/totp/code', { code: totpCode(totpUri) })).status, 204)
    const token = await api.tokenOf(email)
    await linkAdministrator(deps, email, issuer, subject)
    const find = (seconds: number) =>
      db.admin.read((tx) => findExternalUser(tx, issuer, subject, new Date(Date.now() + seconds * 1000)))
    assert.equal((await find(0))?.id, userId)
    await unlinkAdministrator(deps, email, issuer, subject)
    assert.equal(await find(60), undefined)
    assert.equal((await browser.fetch('/v1/auth/session')).status, 401)
    const answer = await fetch(`${api.url}/v1/admin/x`, { headers: { authorization: `Bearer ${token}` } })
    assert.equal(answer.status, 401)
    assert.deepEqual((await operationsAbout(userId)).slice(-2), ['users.link', 'users.unlink'])
    const activity = await database.query<{ operation: string }>(
      `select operation from control.user_activity where user_id = $1 and operation like 'users.%' order by seq`,
      [userId],
    )
    assert.deepEqual(
      activity.map(({ operation }) => operation),
      ['users.link', 'users.unlink'],
    )
    const [row] = await database.query(
      `select reason, before, after from control.audit where operation = 'users.unlink' and resource_id = $1`,
      [String(userId)],
    )
    assert.deepEqual(row, { reason: 'Left the company', before: { issuer }, after: null })

    await linkAdministrator(deps, email, issuer, subject)
    assert.equal(await find(-60), undefined, 'a token of before stays invalid')
    assert.equal((await find(60))?.id, userId)
  })

  test('is refused without a link, for the link of another user and for an unknown user', async () => {
    const [one, other] = [await api.grantAdmin(), await api.grantAdmin()]
    await linkAdministrator(deps, one.email, issuer, 'one')
    await assert.rejects(unlinkAdministrator(deps, one.email, issuer, 'two'), /is not linked to/)
    await assert.rejects(
      unlinkAdministrator(deps, one.email, 'https://other.example', 'one'),
      /is not linked/,
    )
    await assert.rejects(unlinkAdministrator(deps, other.email, issuer, 'one'), /is not linked to/)
    await assert.rejects(unlinkAdministrator(deps, 'no.one@example.com', issuer, 'one'), /There is no user/)
    assert.deepEqual((await operationsAbout(one.userId)).at(-1), 'users.link')
    assert.deepEqual(await operationsAbout(other.userId), ['users.create'])
  })
})
