import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decodeJwt } from 'jose'
import { startApi } from '../testing/harness/api.ts'
import { CookieJar } from '../testing/harness/cookie-jar.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { totpCode } from '../testing/harness/totp.ts'

/**
 * Tests over real HTTP, with cookies as in a browser. Each browser has its own address, because rate limits apply per
 * address.
 */
const database = await testDatabase()
const api = await startApi(database, { POSTERN_TRUSTED_PROXIES: '127.0.0.1' })

let addresses = 0
const newBrowser = () => new CookieJar(api.url, { 'x-forwarded-for': `203.0.113.${++addresses}` })

interface Problem {
  error: string
  message: string
}

async function refused(response: Response, status: number, error: string): Promise<string> {
  assert.equal(response.status, status)
  const problem = (await response.json()) as Problem
  assert.deepEqual(Object.keys(problem), ['error', 'message'])
  assert.equal(problem.error, error)
  return problem.message
}

/** Creates an administrator and signs in with both factors. */
async function signedIn() {
  const admin = await api.makeAdmin()
  const browser = newBrowser()
  await browser.post('/v1/auth/sign-in', { email: admin.email, password: admin.password })
  const { status } = await browser.post('/v1/auth/totp/code', { code: totpCode(admin.totpUri) })
  assert.equal(status, 204)
  return { admin, browser }
}

/** A user without a second factor: created as an administrator, then changed. */
async function makeUser(role: 'user' | 'admin') {
  const admin = await api.makeAdmin()
  await database.query('delete from control.two_factors where user_id = $1', [admin.userId])
  await database.query('update control.users set two_factor_enabled = false, role = $2 where id = $1', [
    admin.userId,
    role,
  ])
  return admin
}

const tokenFrom = async (browser: CookieJar): Promise<string> => {
  const response = await browser.post('/v1/auth/token')
  assert.equal(response.status, 200)
  return ((await response.json()) as { token: string }).token
}

const knockAsAdmin = async (token: string): Promise<number> => {
  const { status } = await fetch(`${api.url}/v1/admin/anything`, {
    headers: { authorization: `Bearer ${token}` },
  })
  return status
}

describe('auth.sign-in', () => {
  test('with password and TOTP gives an administrator a ten-minute token for the administrative plane', async () => {
    const admin = await api.makeAdmin()
    const browser = newBrowser()
    const first = await browser.post('/v1/auth/sign-in', { email: admin.email, password: admin.password })
    assert.deepEqual(await first.json(), { second_factor_required: true })
    await refused(await browser.post('/v1/auth/token'), 401, 'unauthenticated')
    assert.equal((await browser.post('/v1/auth/totp/code', { code: totpCode(admin.totpUri) })).status, 204)
    const drawn = await browser.post('/v1/auth/token')
    const { token, expires_at } = (await drawn.json()) as { token: string; expires_at: string }
    const { iat = 0, exp = 0 } = decodeJwt(token)
    assert.equal(exp - iat, 600)
    assert.equal(Date.parse(expires_at), exp * 1000)
    assert.equal(await knockAsAdmin(token), 404, 'authenticated, but there is no such operation')
  })

  test('returns the same response for a wrong password and an unknown address', async () => {
    const admin = await api.makeAdmin()
    const wrong = await newBrowser().post('/v1/auth/sign-in', {
      email: admin.email,
      password: 'not the password',
    })
    const unknown = await newBrowser().post('/v1/auth/sign-in', {
      email: 'nobody@example.com',
      password: 'whatever',
    })
    assert.equal(await refused(wrong, 401, 'unauthenticated'), await refused(unknown, 401, 'unauthenticated'))
  })

  test('rejects a disabled user with the message for a wrong password', async () => {
    const admin = await api.makeAdmin()
    await database.query('update control.users set is_active = false where id = $1', [admin.userId])
    const answer = await newBrowser().post('/v1/auth/sign-in', {
      email: admin.email,
      password: admin.password,
    })
    assert.match(await refused(answer, 401, 'unauthenticated'), /password is wrong/)
  })

  test('is limited per address: the eleventh attempt in a minute is rejected', async () => {
    const browser = newBrowser()
    for (let attempt = 1; attempt <= 10; attempt++) {
      await refused(
        await browser.post('/v1/auth/sign-in', { email: 'a@example.com', password: 'x' }),
        401,
        'unauthenticated',
      )
    }
    const last = await browser.post('/v1/auth/sign-in', { email: 'a@example.com', password: 'x' })
    await refused(last, 429, 'rate_limited')
    assert.ok(Number(last.headers.get('retry-after')) > 0)
  })

  test('rejects a cross-site request from a browser', async () => {
    const { browser } = await signedIn()
    await refused(
      await browser.post('/v1/auth/token', undefined, { origin: 'https://evil.example' }),
      401,
      'unauthenticated',
    )
    const { status } = await browser.post('/v1/auth/token', undefined, { origin: 'http://localhost:8080' })
    assert.equal(status, 200)
  })

  test('sets cookies that are HttpOnly, SameSite and limited to a path', async () => {
    const admin = await api.makeAdmin()
    const answer = await newBrowser().post('/v1/auth/sign-in', {
      email: admin.email,
      password: admin.password,
    })
    const cookies = answer.headers.getSetCookie()
    assert.ok(cookies.length > 0)
    for (const cookie of cookies) assert.match(cookie, /Path=\/v1\/auth; HttpOnly; SameSite=Strict$/)
  })
})

describe('auth.verify-totp', () => {
  test('rejects a wrong code, and a code without a pending sign-in', async () => {
    const admin = await api.makeAdmin()
    await refused(
      await newBrowser().post('/v1/auth/totp/code', { code: totpCode(admin.totpUri) }),
      401,
      'unauthenticated',
    )
    const browser = newBrowser()
    await browser.post('/v1/auth/sign-in', { email: admin.email, password: admin.password })
    const wrong = totpCode(admin.totpUri, Date.now() - 3_600_000)
    await refused(await browser.post('/v1/auth/totp/code', { code: wrong }), 401, 'unauthenticated')
  })

  test('accepts a code once, even within its period of validity', async () => {
    const admin = await api.makeAdmin()
    const code = totpCode(admin.totpUri)
    const give = async () => {
      const browser = newBrowser()
      await browser.post('/v1/auth/sign-in', { email: admin.email, password: admin.password })
      return browser.post('/v1/auth/totp/code', { code })
    }
    const answers = await Promise.all([give(), give(), give()])
    const statuses = answers.map(({ status }) => status).sort((a, b) => a - b)
    assert.deepEqual(statuses, [204, 401, 401])
    await refused(await give(), 401, 'unauthenticated')
  })

  test('is not an oracle inside a session: it only confirms an authenticator set up in that session', async () => {
    const { admin, browser } = await signedIn()
    await refused(
      await browser.post('/v1/auth/totp/code', { code: totpCode(admin.totpUri) }),
      409,
      'already_exists',
    )
    const backup = await browser.post('/v1/auth/backup-code', { code: admin.backupCodes[0] })
    await refused(backup, 409, 'already_exists')
  })

  test('locks the account after ten wrong codes across several sign-ins, and then rejects the right code too', async () => {
    const admin = await api.makeAdmin()
    const wrong = totpCode(admin.totpUri, Date.now() - 3_600_000)
    for (let round = 0; round < 2; round++) {
      const browser = newBrowser()
      await browser.post('/v1/auth/sign-in', { email: admin.email, password: admin.password })
      for (let attempt = 0; attempt < 5; attempt++) await browser.post('/v1/auth/totp/code', { code: wrong })
    }
    const browser = newBrowser()
    await browser.post('/v1/auth/sign-in', { email: admin.email, password: admin.password })
    await refused(
      await browser.post('/v1/auth/totp/code', { code: totpCode(admin.totpUri) }),
      429,
      'rate_limited',
    )
  })
})

describe('auth.verify-backup-code', () => {
  test('accepts each backup code once', async () => {
    const admin = await api.makeAdmin()
    const [code] = admin.backupCodes
    const give = async () => {
      const browser = newBrowser()
      await browser.post('/v1/auth/sign-in', { email: admin.email, password: admin.password })
      return { browser, answer: await browser.post('/v1/auth/backup-code', { code }) }
    }
    const { browser, answer } = await give()
    assert.equal(answer.status, 204)
    assert.equal(await knockAsAdmin(await tokenFrom(browser)), 404)
    await refused((await give()).answer, 401, 'unauthenticated')
  })
})

describe('auth.issue-token', () => {
  test("rejects an administrator's session without a second factor", async () => {
    const admin = await makeUser('admin')
    const browser = newBrowser()
    const answer = await browser.post('/v1/auth/sign-in', { email: admin.email, password: admin.password })
    assert.deepEqual(await answer.json(), { second_factor_required: false })
    assert.match(
      await refused(await browser.post('/v1/auth/token'), 401, 'unauthenticated'),
      /two-factor authentication/,
    )
  })

  test('rejects a session created before the second factor was set up elsewhere, because it was revoked', async () => {
    const admin = await makeUser('admin')
    const older = newBrowser()
    await older.post('/v1/auth/sign-in', { email: admin.email, password: admin.password })
    const newer = newBrowser()
    await newer.post('/v1/auth/sign-in', { email: admin.email, password: admin.password })
    const setUp = await newer.post('/v1/auth/totp', { password: admin.password })
    const { totp_uri } = (await setUp.json()) as { totp_uri: string }
    assert.equal((await newer.post('/v1/auth/totp/code', { code: totpCode(totp_uri) })).status, 204)
    assert.equal(await knockAsAdmin(await tokenFrom(newer)), 404)
    await refused(await older.post('/v1/auth/token'), 401, 'unauthenticated')
    await refused(await older.post('/v1/auth/totp', { password: admin.password }), 401, 'unauthenticated')
  })

  test('gives other users a token that the administrative plane rejects', async () => {
    const user = await makeUser('user')
    const browser = newBrowser()
    await browser.post('/v1/auth/sign-in', { email: user.email, password: user.password })
    assert.equal(await knockAsAdmin(await tokenFrom(browser)), 403)
  })
})

describe('auth.sign-out and auth.end-session', () => {
  test("invalidate the session's tokens immediately", async () => {
    const { browser } = await signedIn()
    const token = await tokenFrom(browser)
    assert.equal(await knockAsAdmin(token), 404)
    assert.equal((await browser.post('/v1/auth/sign-out')).status, 204)
    assert.equal(await knockAsAdmin(token), 401)
    await refused(await browser.post('/v1/auth/token'), 401, 'unauthenticated')
  })

  test("affect only the same user's sessions", async () => {
    const { admin, browser } = await signedIn()
    const { browser: stranger } = await signedIn()
    const token = await tokenFrom(browser)
    const session = (await (await browser.fetch('/v1/auth/session')).json()) as {
      session: { id: number }
      user: { email: string }
    }
    assert.equal(session.user.email, admin.email)
    const path = `/v1/auth/sessions/${session.session.id}`
    await refused(await stranger.fetch(path, { method: 'DELETE' }), 404, 'not_found')
    assert.equal(await knockAsAdmin(token), 404)
    assert.equal((await browser.fetch(path, { method: 'DELETE' })).status, 204)
    assert.equal(await knockAsAdmin(token), 401)
  })
})

describe('a session', () => {
  test('expires a week after its sign-in, regardless of use', async () => {
    const { admin, browser } = await signedIn()
    const age = (days: number) =>
      database.query(
        'update control.sessions set created_at = now() - make_interval(days => $2) where user_id = $1',
        [admin.userId, days],
      )
    await age(6)
    await tokenFrom(browser)
    await age(8)
    await refused(await browser.post('/v1/auth/token'), 401, 'unauthenticated')
    const change = { current_password: admin.password, new_password: 'a much better password' }
    await refused(await browser.post('/v1/auth/password', change), 401, 'unauthenticated')
  })
})

describe('auth.list-sessions', () => {
  test("returns the user's active sessions, with the current one marked", async () => {
    const { admin, browser } = await signedIn()
    const other = newBrowser()
    await other.post('/v1/auth/sign-in', { email: admin.email, password: admin.password })
    await other.post('/v1/auth/backup-code', { code: admin.backupCodes[0] })
    const { data } = (await (await browser.fetch('/v1/auth/sessions')).json()) as {
      data: { is_current: boolean; ip_address: string; second_factor_at: string | null }[]
    }
    assert.deepEqual(
      data.map(({ is_current }) => is_current),
      [false, true],
    )
    for (const { ip_address, second_factor_at } of data) {
      assert.match(ip_address, /^203\.0\.113\./)
      assert.match(second_factor_at ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    }
  })
})

describe('auth.change-password', () => {
  test('requires the old password and at least twelve characters, and revokes the other sessions', async () => {
    const { admin, browser } = await signedIn()
    const other = newBrowser()
    await other.post('/v1/auth/sign-in', { email: admin.email, password: admin.password })
    await other.post('/v1/auth/backup-code', { code: admin.backupCodes[0] })
    // A sign-in with the old password that is still waiting for its second-factor code when the password changes.
    const waiting = newBrowser()
    await waiting.post('/v1/auth/sign-in', { email: admin.email, password: admin.password })
    const code = totpCode(admin.totpUri, Date.now() + 30_000)
    const change = (current_password: string, new_password: string) =>
      browser.post('/v1/auth/password', { current_password, new_password })

    await refused(await change('wrong', 'a much better password'), 401, 'unauthenticated')
    assert.match(
      await refused(await change(admin.password, 'short'), 422, 'validation_failed'),
      /12 characters/,
    )
    assert.equal((await change(admin.password, 'a much better password')).status, 204)
    await refused(await other.post('/v1/auth/token'), 401, 'unauthenticated')
    assert.equal(await knockAsAdmin(await tokenFrom(browser)), 404, 'the session of the change stays valid')
    await refused(await waiting.post('/v1/auth/totp/code', { code }), 401, 'unauthenticated')
    const again = await newBrowser().post('/v1/auth/sign-in', {
      email: admin.email,
      password: 'a much better password',
    })
    assert.equal(again.status, 200)
  })
})

test('no password, code, cookie or token is logged or stored in plain text', async () => {
  const { admin, browser } = await signedIn()
  const token = await tokenFrom(browser)
  const seed = new URL(admin.totpUri).searchParams.get('secret') ?? ''
  const log = api.logLines.join('')
  const rows = await database.query(
    `select row_to_json(a)::text as row from control.accounts a where user_id = $1
     union all select row_to_json(t)::text from control.two_factors t where user_id = $1
     union all select row_to_json(k)::text from control.signing_keys k`,
    [admin.userId],
  )
  assert.ok(rows.length >= 3)
  const stored = JSON.stringify(rows)
  for (const secret of [admin.password, seed, token, ...admin.backupCodes]) {
    assert.ok(!log.includes(secret), 'logged')
    assert.ok(!stored.includes(secret), 'stored')
  }
  assert.ok(!stored.includes('"d\\":'), 'the private key of a signing key is not readable')
})
