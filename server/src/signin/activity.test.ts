import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { verifyActivity } from '../core/control/activity/verify.ts'
import { startApi } from '../testing/harness/api.ts'
import { CookieJar } from '../testing/harness/cookie-jar.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { totpCode } from '../testing/harness/totp.ts'
import { eventually } from '../testing/harness/waiting.ts'

/** A user's activity log records what happens to the account. */
const database = await testDatabase()
const api = await startApi(database, { POSTERN_TRUSTED_PROXIES: '127.0.0.1' })

let addresses = 0
const newBrowser = () =>
  new CookieJar(api.url, { 'x-forwarded-for': `203.0.113.${++addresses}`, 'user-agent': 'Browser' })

interface Entry {
  operation: string
  actor: { type: string; id: number | null; email: string | null; ip: string; user_agent: string }
  resource_type: string
  resource_id: string | null
  after: Record<string, unknown> | null
}

const activityIn = async (browser: CookieJar): Promise<Entry[]> => {
  const response = await browser.fetch('/v1/auth/activity?limit=200')
  const text = await response.text()
  assert.equal(response.status, 200, text)
  return (JSON.parse(text) as { data: Entry[] }).data
}
const rowsOf = (userId: number) =>
  database.query<{ operation: string; actor: string; after: Record<string, unknown> | null }>(
    'select operation, actor_type as actor, after from control.user_activity where user_id = $1 order by seq',
    [userId],
  )
/** Rejections are recorded asynchronously, after the response. */
const rowsUntil = (userId: number, count: number) =>
  eventually(`user ${userId} has ${count} rows`, async () => {
    const rows = await rowsOf(userId)
    return rows.length >= count && rows
  })

/** A user without a second factor. */
async function makeUser() {
  const admin = await api.makeAdmin()
  await database.query('delete from control.two_factors where user_id = $1', [admin.userId])
  await database.query(`update control.users set two_factor_enabled = false, role = 'user' where id = $1`, [
    admin.userId,
  ])
  return admin
}

const signIn = (browser: CookieJar, { email, password }: { email: string; password: string }) =>
  browser.post('/v1/auth/sign-in', { email, password })

describe("a user's activity log", () => {
  test('records a sign-in with both factors and its origin', async () => {
    const admin = await api.makeAdmin()
    const browser = newBrowser()
    await signIn(browser, { ...admin, email: admin.email.toUpperCase() })
    await browser.post('/v1/auth/totp/code', { code: totpCode(admin.totpUri) })
    const [second, first, ...more] = await activityIn(browser)
    assert.deepEqual(more, [])
    assert.deepEqual(first?.after, { outcome: 'success', method: 'password', second_factor_required: true })
    assert.deepEqual(second?.after, { outcome: 'success', method: 'totp', second_factor_required: false })
    const { actor } = second ?? assert.fail()
    assert.deepEqual(actor, {
      ...{ type: 'user', id: admin.userId, email: admin.email },
      ...{ ip: `203.0.113.${addresses}`, user_agent: 'Browser' },
    })
  })

  test('records wrong passwords and codes with an unknown actor, and nothing for an address without an account', async () => {
    const admin = await api.makeAdmin()
    const browser = newBrowser()
    assert.equal((await signIn(browser, { ...admin, password: 'not the password' })).status, 401)
    assert.equal((await signIn(browser, { email: 'nobody@example.org', password: 'anything' })).status, 401)
    await rowsUntil(admin.userId, 1)
    await signIn(browser, admin)
    assert.equal((await browser.post('/v1/auth/totp/code', { code: '000000' })).status, 401)
    await rowsUntil(admin.userId, 3)
    assert.equal((await browser.post('/v1/auth/backup-code', { code: 'no-such' })).status, 401)
    const rows = await rowsUntil(admin.userId, 4)
    assert.deepEqual(
      rows.map(({ actor, after }) => [actor, after?.['outcome'], after?.['method']]),
      [
        ['unknown', 'failure', 'password'],
        ['user', 'success', 'password'],
        ['unknown', 'failure', 'totp'],
        ['unknown', 'failure', 'backup_code'],
      ],
    )
  })

  test('cannot be flooded by an attacker: only the first few failures per hour are recorded', async () => {
    const admin = await api.makeAdmin()
    for (let no = 0; no < 14; no++) {
      // The backoff is tested in password-backoff.test.ts.
      await database.query('delete from control.sign_in_failures')
      const answer = await signIn(newBrowser(), { ...admin, password: `wrong password ${no}` })
      assert.equal(answer.status, 401)
      // Simulates that each attempt was made after its delay (password-backoff.ts).
      await database.query('delete from control.sign_in_failures')
    }
    await eventually('all are counted', async () => {
      const [head] = await database.query<{ attempts: number }>(
        'select attempts from control.user_activity_heads where user_id = $1',
        [admin.userId],
      )
      return head?.attempts === 14
    })
    assert.equal((await rowsOf(admin.userId)).length, 10)
  })

  test('records the right password after any number of wrong ones', async () => {
    const admin = await api.makeAdmin()
    await signIn(newBrowser(), { ...admin, password: 'not the password' })
    await rowsUntil(admin.userId, 1)
    await database.query('update control.user_activity_heads set attempts = 50 where user_id = $1', [
      admin.userId,
    ])
    for (const _ of [1, 2]) assert.equal((await signIn(newBrowser(), admin)).status, 200)
    assert.deepEqual(
      (await rowsOf(admin.userId)).map(({ after }) => after?.['outcome']),
      ['failure', 'success'],
    )
  })

  test('records a used backup code, a revoked session and a sign-out', async () => {
    const admin = await api.makeAdmin()
    const [one, other] = [newBrowser(), newBrowser()]
    await signIn(one, admin)
    assert.equal((await one.post('/v1/auth/backup-code', { code: admin.backupCodes[0] })).status, 204)
    await signIn(other, admin)
    assert.equal((await other.post('/v1/auth/backup-code', { code: admin.backupCodes[1] })).status, 204)
    const sessions = (await (await one.fetch('/v1/auth/sessions')).json()) as {
      data: { id: number; is_current: boolean }[]
    }
    const ended = sessions.data.find(({ is_current }) => !is_current) ?? assert.fail()
    assert.equal((await one.fetch(`/v1/auth/sessions/${ended.id}`, { method: 'DELETE' })).status, 204)
    const [entry] = await activityIn(one)
    assert.deepEqual(
      [entry?.operation, entry?.resource_type, entry?.resource_id],
      ['auth.end-session', 'session', String(ended.id)],
    )
    assert.equal((await one.post('/v1/auth/sign-out')).status, 204)
    assert.equal((await one.post('/v1/auth/sign-out')).status, 204)
    const rows = await rowsOf(admin.userId)
    assert.deepEqual(
      rows.map(({ operation, after }) => [operation, after?.['method']]),
      [
        ['auth.sign-in', 'password'],
        ['auth.sign-in', 'backup_code'],
        ['auth.sign-in', 'password'],
        ['auth.sign-in', 'backup_code'],
        ['auth.end-session', undefined],
        ['auth.sign-out', undefined],
      ],
    )
  })

  test('records a new second factor, its backup codes, and a changed password', async () => {
    const user = await makeUser()
    const browser = newBrowser()
    await signIn(browser, user)
    const set = await browser.post('/v1/auth/totp', { password: user.password })
    const { totp_uri } = (await set.json()) as { totp_uri: string }
    assert.equal((await browser.post('/v1/auth/totp/code', { code: totpCode(totp_uri) })).status, 204)
    const passwords = { current_password: user.password, new_password: 'a much better password' }
    const wrong = { ...passwords, current_password: 'not this one at all' }
    assert.equal((await browser.post('/v1/auth/password', wrong)).status, 401)
    await rowsUntil(user.userId, 4)
    assert.equal((await browser.post('/v1/auth/password', passwords)).status, 204)
    const rows = await rowsOf(user.userId)
    assert.deepEqual(
      rows.map(({ operation, actor, after }) => [operation, actor, after]),
      [
        ['auth.sign-in', 'user', { outcome: 'success', method: 'password', second_factor_required: false }],
        ['auth.enroll-totp', 'user', { backup_codes: 10 }],
        ['auth.confirm-totp', 'user', null],
        ['auth.change-password', 'unknown', { outcome: 'failure', method: 'password' }],
        ['auth.change-password', 'user', null],
      ],
    )
  })

  test('is visible only to the signed-in user', async () => {
    assert.equal((await newBrowser().fetch('/v1/auth/activity')).status, 401)
    const user = await makeUser()
    const browser = newBrowser()
    await signIn(browser, user)
    const entries = await activityIn(browser)
    assert.ok(entries.every(({ actor }) => actor.id === user.userId))
  })
})

describe('without an activity row', () => {
  /** The row in the user's activity log cannot be written. */
  async function withoutRows(work: () => Promise<void>): Promise<void> {
    await database.query(`create function public.refuse() returns trigger language plpgsql as
      $$ begin raise exception 'no activity can be written'; end $$;
      create trigger fault before insert on control.user_activity for each row execute function public.refuse()`)
    try {
      await work()
    } finally {
      await database.query('drop trigger fault on control.user_activity; drop function public.refuse()')
    }
  }

  test('no sign-in, session revocation, password change or second factor change takes effect', async () => {
    const user = await makeUser()
    const browser = newBrowser()
    await signIn(browser, user)
    const set = await browser.post('/v1/auth/totp', { password: user.password })
    const { totp_uri } = (await set.json()) as { totp_uri: string }
    const credentials = () =>
      database.query(
        `select accounts.password, users.two_factor_enabled from control.accounts
           join control.users as users on users.id = user_id where user_id = $1`,
        [user.userId],
      )
    const before = await credentials()
    await withoutRows(async () => {
      const stranger = newBrowser()
      assert.equal((await signIn(stranger, user)).status, 500)
      assert.equal((await stranger.fetch('/v1/auth/session')).status, 401, 'no cookie was set')
      assert.equal((await browser.post('/v1/auth/totp/code', { code: totpCode(totp_uri) })).status, 500)
      const passwords = { current_password: user.password, new_password: 'a much better password' }
      assert.equal((await browser.post('/v1/auth/password', passwords)).status, 500)
      assert.equal((await browser.post('/v1/auth/sign-out')).status, 500)
    })
    assert.deepEqual(await credentials(), before)
    assert.equal((await browser.fetch('/v1/auth/session')).status, 200, 'the session stays valid')
  })
})

test('every chain is intact', async () => {
  const { ok, first_bad } = await verifyActivity(api.context.db.admin)
  assert.deepEqual([ok, first_bad], [true, null])
})
