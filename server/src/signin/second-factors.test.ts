import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startApi } from '../testing/harness/api.ts'
import { CookieJar } from '../testing/harness/cookie-jar.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { totpCode } from '../testing/harness/totp.ts'
import { type AssertedPasskey, createPasskeyAuthenticator } from '../testing/peers/passkey-authenticator.ts'

/** Authenticator apps, backup codes and passkeys. */
const database = await testDatabase()
const api = await startApi(database, { POSTERN_TRUSTED_PROXIES: '127.0.0.1' })

let addresses = 0
const newBrowser = () => new CookieJar(api.url, { 'x-forwarded-for': `203.0.113.${++addresses}` })

/** With both factors. The administrator's first code is used. */
async function signedInAdmin() {
  const admin = await api.makeAdmin()
  const browser = newBrowser()
  await browser.post('/v1/auth/sign-in', { email: admin.email, password: admin.password })
  const { status } = await browser.post('/v1/auth/totp/code', { code: totpCode(admin.totpUri) })
  assert.equal(status, 204)
  return { ...admin, browser }
}

const makeCustomer = (userId: number) =>
  database.query(`update control.users set role = 'user' where id = $1`, [userId])

async function withPasswordAndCode(
  { email, password }: { email: string; password: string },
  code: string,
): Promise<number> {
  const browser = newBrowser()
  await browser.post('/v1/auth/sign-in', { email, password })
  return (await browser.post('/v1/auth/totp/code', { code })).status
}

const bodyOf = async <T>(response: Promise<Response>): Promise<T> => {
  const answer = await response
  const text = await answer.text()
  assert.equal(answer.status, 200, text)
  return JSON.parse(text) as T
}

const ahead = 30_000

const operationsOf = async (browser: CookieJar): Promise<string[]> => {
  const { data } = await bodyOf<{ data: { operation: string }[] }>(browser.fetch('/v1/auth/activity'))
  return data.map(({ operation }) => operation)
}

describe('auth.replace-totp', () => {
  test('makes the new authenticator valid with its first code, and the old one only then invalid', async () => {
    const admin = await signedInAdmin()
    const { browser, password } = admin
    assert.equal((await browser.post('/v1/auth/totp/replacement', { password: 'wrong' })).status, 401)
    const { totp_uri } = await bodyOf<{ totp_uri: string }>(
      browser.post('/v1/auth/totp/replacement', { password }),
    )
    assert.equal((await browser.post('/v1/auth/totp/replacement/code', { code: '000000' })).status, 401)
    assert.equal(await withPasswordAndCode(admin, totpCode(admin.totpUri, Date.now() + ahead)), 204)
    const code = totpCode(totp_uri)
    assert.equal((await browser.post('/v1/auth/totp/replacement/code', { code })).status, 204)
    assert.equal((await browser.post('/v1/auth/totp/replacement/code', { code })).status, 404)
    assert.equal(await withPasswordAndCode(admin, code), 401, 'the code is used')
    assert.equal(await withPasswordAndCode(admin, totpCode(admin.totpUri, Date.now() - ahead)), 401)
    assert.equal(await withPasswordAndCode(admin, totpCode(totp_uri, Date.now() + ahead)), 204)
    assert.ok((await operationsOf(browser)).includes('auth.replace-totp'))
    const [row] = await database.query<{ row: string }>(
      `select two_factors::text as row from control.two_factors where user_id = $1`,
      [admin.userId],
    )
    assert.ok(!row?.row.includes(new URL(totp_uri).searchParams.get('secret') ?? '?'))
  })

  test('takes at most ten minutes, and needs a session with the second factor', async () => {
    const { browser, password, userId } = await signedInAdmin()
    const start = () => browser.post('/v1/auth/totp/replacement', { password })
    const { totp_uri } = await bodyOf<{ totp_uri: string }>(start())
    await database.query(
      `update control.two_factors set next_secret_at = next_secret_at - interval '10 minutes' where user_id = $1`,
      [userId],
    )
    const late = await browser.post('/v1/auth/totp/replacement/code', { code: totpCode(totp_uri) })
    assert.equal(late.status, 404)
    await database.query('update control.sessions set second_factor_at = null where user_id = $1', [userId])
    assert.equal((await start()).status, 401)
  })
})

describe('auth.disable-totp', () => {
  test('removes the second factor of a customer, who then signs in with the password', async () => {
    const { browser, email, password, userId } = await signedInAdmin()
    await makeCustomer(userId)
    assert.equal((await browser.post('/v1/auth/totp/disable', { password: 'wrong' })).status, 401)
    assert.equal((await browser.post('/v1/auth/totp/disable', { password })).status, 204)
    const signedIn = await bodyOf(newBrowser().post('/v1/auth/sign-in', { email, password }))
    assert.deepEqual(signedIn, { second_factor_required: false })
    const { session } = await bodyOf<{ session: { second_factor_at: unknown } }>(
      browser.fetch('/v1/auth/session'),
    )
    assert.equal(session.second_factor_at, null)
    assert.ok((await operationsOf(browser)).includes('auth.disable-totp'))
    assert.equal((await browser.post('/v1/auth/totp/disable', { password })).status, 404)
  })

  test('is refused to administrators', async () => {
    const { browser, password } = await signedInAdmin()
    assert.equal((await browser.post('/v1/auth/totp/disable', { password })).status, 409)
  })
})

test('auth.renew-backup-codes replaces the backup codes', async () => {
  const { browser, email, password, backupCodes } = await signedInAdmin()
  assert.equal((await browser.post('/v1/auth/backup-codes', { password: 'wrong' })).status, 401)
  const { backup_codes } = await bodyOf<{ backup_codes: string[] }>(
    browser.post('/v1/auth/backup-codes', { password }),
  )
  assert.equal(backup_codes.length, 10)
  const statuses = []
  for (const code of [backupCodes[0], backup_codes[0]]) {
    const other = newBrowser()
    await other.post('/v1/auth/sign-in', { email, password })
    statuses.push((await other.post('/v1/auth/backup-code', { code })).status)
  }
  assert.deepEqual(statuses, [401, 204])
})

describe('passkeys', () => {
  type Authenticator = ReturnType<typeof createPasskeyAuthenticator>
  const newAuthenticator = () => createPasskeyAuthenticator('http://localhost:8080')

  async function add(user: { browser: CookieJar; password: string }, authenticator: Authenticator) {
    const { browser, password } = user
    const { options } = await bodyOf<{ options: { challenge: string } }>(
      browser.post('/v1/auth/passkeys/options', { password }),
    )
    const credential = authenticator.create(options)
    return bodyOf<{ id: number }>(browser.post('/v1/auth/passkeys', { name: 'Laptop', credential }))
  }

  async function signIn(
    make: (options: { challenge: string }) => AssertedPasskey,
    browser = newBrowser(),
  ): Promise<{ browser: CookieJar; response: Response; used: AssertedPasskey }> {
    const { options } = await bodyOf<{ options: { challenge: string } }>(
      browser.post('/v1/auth/passkey/options'),
    )
    const used = make(options)
    return { browser, used, response: await browser.post('/v1/auth/passkey/sign-in', { credential: used }) }
  }

  test('that verified their user count as both factors, also for an administrator', async () => {
    const admin = await signedInAdmin()
    const authenticator = newAuthenticator()
    await add(admin, authenticator)
    const { browser, response } = await signIn((options) => authenticator.get(options))
    assert.deepEqual(await response.json(), { second_factor_required: false })
    assert.equal((await browser.post('/v1/auth/token')).status, 200)
    const { session } = await bodyOf<{ session: { second_factor_at: string } }>(
      browser.fetch('/v1/auth/session'),
    )
    assert.ok(session.second_factor_at)
    assert.deepEqual((await operationsOf(browser)).slice(0, 2), ['auth.sign-in', 'auth.add-passkey'])
  })

  test('that did not verify their user are one factor: the code of the authenticator app follows', async () => {
    const admin = await signedInAdmin()
    const authenticator = newAuthenticator()
    await add(admin, authenticator)
    const { browser, response } = await signIn((options) =>
      authenticator.get(options, { verifiesUser: false }),
    )
    assert.deepEqual(await response.json(), { second_factor_required: true })
    assert.equal((await browser.fetch('/v1/auth/session')).status, 401)
    const code = totpCode(admin.totpUri, Date.now() + ahead)
    assert.equal((await browser.post('/v1/auth/totp/code', { code })).status, 204)
    assert.equal((await browser.post('/v1/auth/token')).status, 200)
  })

  test('that did not verify their user give an administrator without an authenticator app no token', async () => {
    const admin = await signedInAdmin()
    const authenticator = newAuthenticator()
    await add(admin, authenticator)
    await database.query('delete from control.two_factors where user_id = $1', [admin.userId])
    await database.query('update control.users set two_factor_enabled = false where id = $1', [admin.userId])
    const { browser, response } = await signIn((options) =>
      authenticator.get(options, { verifiesUser: false }),
    )
    assert.deepEqual(await response.json(), { second_factor_required: false })
    assert.equal((await browser.post('/v1/auth/token')).status, 401)
  })

  test('are rejected with another challenge, origin, host or key, twice, and for a disabled user', async () => {
    const admin = await signedInAdmin()
    const [authenticator, stranger] = [newAuthenticator(), newAuthenticator()]
    await add(admin, authenticator)
    const makers: ((options: { challenge: string }) => AssertedPasskey)[] = [
      () => authenticator.get({ challenge: 'AAAA' }),
      (options) => authenticator.get(options, { origin: 'https://evil.example' }),
      (options) => authenticator.get(options, { rpId: 'evil.example' }),
      (options) => stranger.get(options),
      (options) => ({ ...stranger.get(options), id: authenticator.get(options).id }),
      (options) => {
        const { response, ...rest } = authenticator.get(options, { verifiesUser: false })
        const data = Buffer.from(response.authenticatorData, 'base64url')
        data[32] = (data[32] ?? 0) | 0x04
        return { ...rest, response: { ...response, authenticatorData: data.toString('base64url') } }
      },
    ]
    for (const make of makers) {
      const { response, browser } = await signIn(make)
      assert.equal(response.status, 401, make.toString())
      assert.equal((await browser.fetch('/v1/auth/session')).status, 401)
    }
    const { browser, used } = await signIn((options) => authenticator.get(options))
    assert.equal((await browser.post('/v1/auth/passkey/sign-in', { credential: used })).status, 401)
    const fresh = newBrowser()
    await fresh.post('/v1/auth/passkey/options')
    assert.equal((await fresh.post('/v1/auth/passkey/sign-in', { credential: used })).status, 401)
    await database.query('update control.users set is_active = false where id = $1', [admin.userId])
    assert.equal((await signIn((options) => authenticator.get(options))).response.status, 401)
  })

  test('are added only with the password or a recent second factor, and by the same user', async () => {
    const [one, other] = [await signedInAdmin(), await signedInAdmin()]
    await database.query(
      `update control.sessions set second_factor_at = second_factor_at - interval '11 minutes'`,
    )
    const start = (password?: string) =>
      one.browser.post('/v1/auth/passkeys/options', password === undefined ? {} : { password })
    assert.equal((await start()).status, 401)
    assert.equal((await start('wrong')).status, 401)
    const { options } = await bodyOf<{ options: { challenge: string } }>(start(one.password))
    const credential = newAuthenticator().create(options)
    const foreign = await other.browser.post('/v1/auth/passkeys', { name: 'x', credential })
    assert.equal(foreign.status, 401)
    assert.equal((await one.browser.post('/v1/auth/passkeys', { name: '', credential })).status, 422)
  })

  test('are listed, renamed and deleted by their own user only', async () => {
    const [one, other] = [await signedInAdmin(), await signedInAdmin()]
    const authenticator = newAuthenticator()
    const { id } = await add(one, authenticator)
    assert.equal((await other.browser.post(`/v1/auth/passkeys/${id}`, { name: 'Mine' })).status, 404)
    assert.equal((await other.browser.fetch(`/v1/auth/passkeys/${id}`, { method: 'DELETE' })).status, 404)
    assert.equal((await one.browser.post(`/v1/auth/passkeys/${id}`, { name: 'Key ring' })).status, 204)
    const list = () =>
      bodyOf<{ data: { id: number; name: string }[] }>(one.browser.fetch('/v1/auth/passkeys'))
    assert.deepEqual(
      (await list()).data.map(({ id, name }) => [id, name]),
      [[id, 'Key ring']],
    )
    assert.equal((await one.browser.fetch(`/v1/auth/passkeys/${id}`, { method: 'DELETE' })).status, 204)
    assert.deepEqual((await list()).data, [])
    assert.equal((await signIn((options) => authenticator.get(options))).response.status, 401)
  })
})
