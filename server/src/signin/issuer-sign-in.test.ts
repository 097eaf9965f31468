import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { generateKeyPair } from 'jose'
import { purgeSignIns } from '../core/control/access/purge.ts'
import { startApi } from '../testing/harness/api.ts'
import { CookieJar } from '../testing/harness/cookie-jar.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { totpCode } from '../testing/harness/totp.ts'
import {
  type IssuerPerson,
  type OpenidProvider,
  signWith,
  startOpenidProvider,
} from '../testing/peers/openid-provider.ts'

/** Signing in at real issuers, and what strangers, other sites and dishonest issuers try. */
const origin = 'http://localhost:8080'
const example = await startOpenidProvider('example')
const other = await startOpenidProvider('other')
for (const peer of [example, other]) peer.register([origin])
const database = await testDatabase()
const issuers = JSON.stringify([
  { ...example.configuration, second_factor_acr: ['phr'], second_factor_amr: ['otp'], sign_up: true },
  { ...other.configuration, sign_up: true },
])
const api = await startApi(database, {
  POSTERN_SIGN_IN_ISSUERS: issuers,
  POSTERN_CUSTOMER_SIGN_UP: 'true',
  POSTERN_TRUSTED_PROXIES: '127.0.0.1',
})

let addresses = 0
const newBrowser = (url = api.url) =>
  new CookieJar(url, { 'x-forwarded-for': `203.0.113.${++addresses % 250}` })

beforeEach(() => {
  for (const peer of [example, other]) Object.assign(peer, { person: null, forge: undefined, metadata: {} })
})

let people = 0
const newPerson = (claims: Partial<IssuerPerson> = {}): IssuerPerson => {
  const n = ++people
  return {
    sub: `sub-${n}`,
    email: `person${n}@example.org`,
    email_verified: true,
    name: `Person ${n}`,
    ...claims,
  }
}

/** Returns the address at the issuer. */
async function start(browser: CookieJar, body: object = {}, id = 'example'): Promise<string> {
  const answer = await browser.post(`/v1/auth/issuers/${id}/start`, { return_to: '/app/', ...body })
  assert.equal(answer.status, 200, await answer.clone().text())
  return ((await answer.json()) as { url: string }).url
}

/** The browser returns from the issuer. Returns where it goes next. */
async function back(browser: CookieJar, callback: string): Promise<string> {
  const { pathname, search } = new URL(callback)
  const answer = await browser.fetch(pathname + search, { redirect: 'manual' })
  assert.equal(answer.status, 303, await answer.text())
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  return answer.headers.get('location') ?? ''
}

async function signIn(
  person: IssuerPerson | null,
  browser = newBrowser(),
  body: object = {},
  peer: OpenidProvider = example,
): Promise<string> {
  peer.person = person
  const id = peer === example ? 'example' : 'other'
  return back(browser, await peer.visit(await start(browser, body, id)))
}

interface Session {
  user: { id: number; email: string; name: string; has_password: boolean }
  session: { second_factor_at: string | null }
}
const sessionOf = async (browser: CookieJar): Promise<Session | undefined> => {
  const answer = await browser.fetch('/v1/auth/session')
  return answer.status === 200 ? ((await answer.json()) as Session) : undefined
}

const activityOf = async (browser: CookieJar) => {
  const { data } = (await (await browser.fetch('/v1/auth/activity')).json()) as {
    data: { operation: string; before: unknown; after: unknown }[]
  }
  return data
}

const linkBody = (password: string) => ({ return_to: '/app/account', password })

/** Links the person to the account that is signed in in this browser. */
async function link(browser: CookieJar, person: IssuerPerson, password: string): Promise<string> {
  example.person = person
  const answer = await browser.post('/v1/auth/issuers/example/link', linkBody(password))
  assert.equal(answer.status, 200, await answer.clone().text())
  return back(browser, await example.visit(((await answer.json()) as { url: string }).url))
}

/** A user with a password and without a second factor, signed in. */
async function makeCustomer() {
  const made = await api.makeAdmin()
  await database.query('delete from control.two_factors where user_id = $1', [made.userId])
  await database.query(`update control.users set role = 'user', two_factor_enabled = false where id = $1`, [
    made.userId,
  ])
  const browser = newBrowser()
  const { email, password } = made
  assert.equal((await browser.post('/v1/auth/sign-in', { email, password })).status, 200)
  return { ...made, browser }
}

async function makeAdministrator(person: IssuerPerson) {
  const made = await api.makeAdmin()
  await database.query('insert into control.external_logins (issuer, subject, user_id) values ($1, $2, $3)', [
    example.url,
    person.sub,
    made.userId,
  ])
  return made
}

const countUsers = async () =>
  (await database.query<{ count: number }>('select count(*)::integer as count from control.users'))[0]?.count

describe('signing in at an issuer', () => {
  test('creates an account for a verified address, and signs in to it from then on', async () => {
    const person = newPerson()
    const browser = newBrowser()
    assert.equal(await signIn(person, browser), '/app/')
    const session = await sessionOf(browser)
    assert.deepEqual(
      [
        session?.user.email,
        session?.user.name,
        session?.user.has_password,
        session?.session.second_factor_at,
      ],
      [person.email, person.name, false, null],
    )
    const activity = await activityOf(browser)
    assert.deepEqual(
      activity.map(({ operation, after }) => [operation, after]),
      [
        ['auth.sign-in', { outcome: 'success', method: 'issuer', second_factor_required: false }],
        ['auth.sign-up-at-issuer', { issuer: example.url }],
      ],
    )
    // The address changes at the issuer, and the account stays the same.
    const again = newBrowser()
    assert.equal(await signIn({ ...person, email: 'moved@example.org' }, again), '/app/')
    assert.equal((await sessionOf(again))?.user.id, session?.user.id)
    assert.equal((await sessionOf(again))?.user.email, person.email)
    assert.equal((await again.post('/v1/auth/token')).status, 200)
  })

  test('uses PKCE, state, nonce and a fixed redirect URI', async () => {
    const url = new URL(await start(newBrowser()))
    const parameters = Object.fromEntries(url.searchParams)
    assert.equal(url.origin, example.url)
    assert.equal(parameters['redirect_uri'], `${origin}/v1/auth/issuers/example/callback`)
    assert.deepEqual(
      [parameters['code_challenge_method'], parameters['response_type'], parameters['scope']],
      ['S256', 'code', 'openid email profile'],
    )
    for (const name of ['state', 'nonce', 'code_challenge'])
      assert.match(parameters[name] ?? '', /^[\w-]{43}$/)
    assert.equal(parameters['acr_values'], undefined)
    const fresh = new URL(await start(newBrowser(), { return_to: '/console/', fresh: true }))
    assert.deepEqual(
      ['prompt', 'acr_values', 'max_age'].map((name) => fresh.searchParams.get(name)),
      ['login', 'phr', '300'],
    )
  })

  test('with HTTPS, the cookie has the prefix __Host- and is sent by a redirect only to the callback', async () => {
    const secure = await startApi(database, {
      ...{ POSTERN_SIGN_IN_ISSUERS: issuers, POSTERN_PUBLIC_URL: 'https://mail.example.com' },
    })
    const answer = await newBrowser(secure.url).post('/v1/auth/issuers/example/start', { return_to: '/app/' })
    const [cookie = ''] = answer.headers.getSetCookie()
    assert.match(
      cookie,
      /^__Host-postern\.issuer=[\w-]{43}; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    )
  })

  test('shows the issuers on the sign-in pages', async () => {
    const answer = await newBrowser().fetch('/v1/installation')
    const { sign_in_issuers } = (await answer.json()) as { sign_in_issuers: unknown }
    assert.deepEqual(sign_in_issuers, [
      { id: 'example', label: 'example' },
      { id: 'other', label: 'other' },
    ])
  })

  test('says when the person cancelled, and knows no other issuers', async () => {
    assert.equal(await signIn(null), '/app/#issuer=cancelled')
    for (const path of ['start', 'link', 'callback']) {
      const answer = await newBrowser().fetch(`/v1/auth/issuers/unknown/${path}`, {
        ...(path === 'callback' ? {} : { method: 'POST', json: { return_to: '/app/' } }),
      })
      assert.equal(answer.status, path === 'link' ? 401 : 404)
    }
  })

  test('keeps a code that the authenticator must confirm, unless the issuer shows a second factor', async () => {
    const person = newPerson()
    const made = await makeAdministrator(person)
    await database.query(`update control.users set role = 'user' where id = $1`, [made.userId])
    const browser = newBrowser()
    assert.equal(await signIn(person, browser), '/app/#issuer=code')
    assert.equal(await sessionOf(browser), undefined)
    const code = totpCode(made.totpUri)
    assert.equal((await browser.post('/v1/auth/totp/code', { code })).status, 204)
    assert.notEqual((await sessionOf(browser))?.session.second_factor_at, null)
    const other = newBrowser()
    assert.equal(await signIn({ ...person, acr: 'phr' }, other, { return_to: '/console/' }), '/console/')
    assert.notEqual((await sessionOf(other))?.session.second_factor_at, null)
  })

  test('is rejected for a disabled user', async () => {
    const person = newPerson()
    const browser = newBrowser()
    await signIn(person, browser)
    await database.query('update control.users set is_active = false where email = $1', [person.email])
    assert.equal(await signIn(person), '/app/#issuer=refused')
    assert.equal(await sessionOf(browser), undefined)
  })
})

describe('an administrator', () => {
  const enter = (person: IssuerPerson, browser = newBrowser()) =>
    signIn(person, browser, { return_to: '/console/' })
  const adminStatus = async (browser: CookieJar) => {
    const { token } = (await (await browser.post('/v1/auth/token')).json()) as { token: string }
    const answer = await fetch(new URL('/v1/admin/projects', api.url), {
      headers: { authorization: `Bearer ${token}` },
    })
    return answer.status
  }

  test('needs a second factor that the issuer shows', async () => {
    const person = newPerson()
    await makeAdministrator(person)
    for (const acr of [undefined, 'pwd']) {
      const browser = newBrowser()
      assert.equal(await enter({ ...person, ...(acr && { acr }) }, browser), '/console/#issuer=second-factor')
      assert.equal((await browser.post('/v1/auth/token')).status, 401)
    }
    const browser = newBrowser()
    assert.equal(await enter({ ...person, acr: 'phr' }, browser), '/console/')
    assert.equal(await adminStatus(browser), 200)
    assert.ok(
      (await activityOf(browser)).some(
        ({ after }) => (after as { outcome?: string } | null)?.outcome === 'failure',
      ),
    )
  })

  test('can show it in amr, but not at an issuer without configured values', async () => {
    const person = newPerson()
    const { userId } = await makeAdministrator(person)
    await database.query(
      'insert into control.external_logins (issuer, subject, user_id) values ($1, $2, $3)',
      [other.url, person.sub, userId],
    )
    example.forge = other.forge = ({ header, claims }) =>
      (claims['iss'] === example.url ? example : other).sign({
        header,
        claims: { ...claims, acr: 'pwd', amr: ['pwd', 'otp'] },
      })
    const browser = newBrowser()
    assert.equal(await enter(person, browser), '/console/')
    assert.equal(await adminStatus(browser), 200)
    assert.equal(
      await signIn(person, newBrowser(), { return_to: '/console/' }, other),
      '/console/#issuer=second-factor',
    )
    // Without the time of authentication, the second factor proves nothing.
    example.forge = ({ header, claims: { auth_time: _, ...claims } }) =>
      example.sign({ header, claims: { ...claims, amr: ['otp'] } })
    assert.equal(await enter(person), '/console/#issuer=second-factor')
    // The person can remove max_age from the request, and keep a session at the issuer for weeks.
    const [halfDay, minute] = [12 * 3600, 60]
    for (const [age, page] of [
      [halfDay - minute, '/console/'],
      [halfDay + 5 * minute, '/console/#issuer=second-factor'],
    ] as const) {
      example.forge = ({ header, claims }) =>
        example.sign({
          header,
          claims: { ...claims, amr: ['otp'], auth_time: Math.floor(Date.now() / 1000) - age },
        })
      assert.equal(await enter(person), page)
    }
  })

  test('has a recent second factor only if the issuer verified it just now', async () => {
    const person = newPerson({ acr: 'phr', ts: Math.floor(Date.now() / 1000) - 3600 })
    await makeAdministrator(person)
    const browser = newBrowser()
    assert.equal(await enter(person, browser), '/console/')
    const at = (await sessionOf(browser))?.session.second_factor_at ?? ''
    assert.equal(Date.parse(at), (person.ts ?? 0) * 1000)
    const body = { email: 'elsewhere@example.org' }
    assert.equal((await browser.post('/v1/auth/email', body)).status, 401)
  })

  test('loses access when demoted, and a user who becomes one needs the second factor', async () => {
    const person = newPerson({ acr: 'phr' })
    const { userId } = await makeAdministrator(person)
    const browser = newBrowser()
    await enter(person, browser)
    assert.equal(await adminStatus(browser), 200)
    await database.query(`update control.users set role = 'user' where id = $1`, [userId])
    assert.equal(await adminStatus(browser), 403)
    const customer = newPerson()
    const promoted = newBrowser()
    await signIn(customer, promoted)
    await database.query(`update control.users set role = 'admin' where email = $1`, [customer.email])
    assert.equal((await promoted.post('/v1/auth/token')).status, 401)
  })
})

describe('an unknown identity', () => {
  test('gets the same response whether or not the address has an account', async () => {
    const known = await makeCustomer()
    const before = await countUsers()
    const cookiesOf = async (person: IssuerPerson) => {
      const browser = newBrowser()
      example.person = person
      const callback = new URL(await example.visit(await start(browser)))
      const answer = await browser.fetch(callback.pathname + callback.search, { redirect: 'manual' })
      return [answer.status, answer.headers.get('location'), answer.headers.getSetCookie()]
    }
    const refused = [
      303,
      '/app/#issuer=refused',
      ['postern.issuer=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax'],
    ]
    for (const claims of [
      { email: known.email },
      { email: known.email.toUpperCase() },
      { email_verified: false },
      { email: known.email, email_verified: false },
      { email: 'no address' },
    ]) {
      assert.deepEqual(await cookiesOf(newPerson(claims)), refused, JSON.stringify(claims))
    }
    const { email: _, ...without } = newPerson()
    assert.deepEqual(await cookiesOf(without), refused)
    assert.equal(await countUsers(), before)
  })

  test('creates no account if sign-up is off, or beyond the limits of sign-ups', async () => {
    const closed = await startApi(database, { POSTERN_SIGN_IN_ISSUERS: issuers })
    const limited = await startApi(database, {
      ...{ POSTERN_SIGN_IN_ISSUERS: issuers, POSTERN_CUSTOMER_SIGN_UP: 'true' },
      ...{ POSTERN_SIGN_UPS_PER_DAY_PER_ADDRESS: '1', POSTERN_TRUSTED_PROXIES: '127.0.0.1' },
    })
    const elsewhere = await startApi(database, {
      POSTERN_SIGN_IN_ISSUERS: JSON.stringify([example.configuration]),
      POSTERN_CUSTOMER_SIGN_UP: 'true',
    })
    const before = await countUsers()
    assert.equal(await signIn(newPerson(), newBrowser(closed.url)), '/app/#issuer=refused')
    assert.equal(await signIn(newPerson(), newBrowser(elsewhere.url)), '/app/#issuer=refused')
    assert.equal(await countUsers(), before)
    const one = () => new CookieJar(limited.url, { 'x-forwarded-for': '198.51.100.7' })
    assert.equal(await signIn(newPerson(), one()), '/app/')
    assert.equal(await signIn(newPerson(), one()), '/app/#issuer=refused')
  })

  test('is another identity at another issuer', async () => {
    const person = newPerson()
    const [one, two] = [newBrowser(), newBrowser()]
    assert.equal(await signIn(person, one), '/app/')
    assert.equal(await signIn(person, two, {}, other), '/app/#issuer=refused', 'the address has an account')
    assert.equal(await signIn({ ...person, email: 'two@example.org' }, two, {}, other), '/app/')
    assert.notEqual((await sessionOf(one))?.user.id, (await sessionOf(two))?.user.id)
  })
})

describe('linking', () => {
  test('needs the password, and then signs in to the account', async () => {
    const { browser, password, userId } = await makeCustomer()
    const person = newPerson()
    for (const [who, body, status] of [
      [newBrowser(), linkBody(password), 401],
      [browser, { return_to: '/app/account' }, 401],
      [browser, linkBody('wrong'), 401],
      [browser, { return_to: 'https://example.net/', password }, 422],
    ] as const) {
      assert.equal((await who.post('/v1/auth/issuers/example/link', body)).status, status)
    }
    assert.equal(await link(browser, person, password), '/app/account#issuer=linked')
    const entered = newBrowser()
    assert.equal(await signIn({ ...person, email: 'unrelated@example.net' }, entered), '/app/')
    assert.equal((await sessionOf(entered))?.user.id, userId)
    const { data } = (await (await browser.fetch('/v1/auth/logins')).json()) as { data: object[] }
    assert.deepEqual(
      data.map((login) => ({ ...login, id: 0, created_at: '' })),
      [{ id: 0, label: 'example', issuer: example.url, subject: person.sub, created_at: '' }],
    )
    const [entry] = (await activityOf(browser)).filter(({ operation }) => operation === 'auth.link-login')
    assert.deepEqual([entry?.before, entry?.after], [null, { issuer: example.url }])
  })

  test('is rejected for an identity that has an account, and after the session has ended', async () => {
    const { browser, password, userId } = await makeCustomer()
    const taken = newPerson()
    await signIn(taken)
    assert.equal(await link(browser, taken, password), '/app/account#issuer=taken')
    example.person = newPerson()
    const answer = await browser.post('/v1/auth/issuers/example/link', linkBody(password))
    const callback = await example.visit(((await answer.json()) as { url: string }).url)
    await browser.post('/v1/auth/sign-out')
    assert.equal(await back(browser, callback), '/app/#issuer=expired')
    const logins = await database.query('select from control.external_logins where user_id = $1', [userId])
    assert.equal(logins.length, 0)
  })

  test('ends at ten logins', async () => {
    const { browser, password, userId } = await makeCustomer()
    await database.query(
      `insert into control.external_logins (issuer, subject, user_id) select 'https://old.example', n::text, $1 from generate_series(1, 10) n`,
      [userId],
    )
    assert.equal(await link(browser, newPerson(), password), '/app/account#issuer=too-many')
    await database.query(`delete from control.external_logins where user_id = $1`, [userId])
  })

  test('is undone, but not if it is the only way to sign in', async () => {
    const { browser, password, email } = await makeCustomer()
    const person = newPerson()
    await link(browser, person, password)
    const idOf = async (jar: CookieJar) =>
      ((await (await jar.fetch('/v1/auth/logins')).json()) as { data: { id: number }[] }).data[0]?.id
    const unlink = async (jar: CookieJar, id: unknown, body: object = {}) =>
      (await jar.post(`/v1/auth/logins/${id}/unlink`, body)).status
    const id = await idOf(browser)
    const stranger = await makeCustomer()
    assert.equal(await unlink(stranger.browser, id, { password: stranger.password }), 404)
    assert.equal(await unlink(browser, id), 401)
    assert.equal(await unlink(browser, id, { password: 'wrong' }), 401)
    assert.equal(await unlink(browser, id, { password }), 204)
    assert.equal(await signIn({ ...person, email }), '/app/#issuer=refused')
    assert.ok((await activityOf(browser)).some(({ operation }) => operation === 'auth.unlink-login'))

    const only = newBrowser()
    const owner = newPerson()
    await signIn(owner, only)
    assert.equal(await unlink(only, await idOf(only)), 409)
    await database.query(
      `insert into control.passkeys (user_id, name, credential_id, public_key, counter, device_type, backed_up)
       select id, 'Laptop', 'credential-of-' || id, 'x', 0, 'singleDevice', false from control.users where email = $1`,
      [owner.email],
    )
    assert.equal(await unlink(only, await idOf(only)), 204)
    const { data } = (await (await only.fetch('/v1/auth/passkeys')).json()) as { data: { id: number }[] }
    const deleted = await only.fetch(`/v1/auth/passkeys/${data[0]?.id}`, { method: 'DELETE' })
    assert.equal(deleted.status, 409, 'the passkey is the only way to sign in now')
  })

  test('without a password, requires a recent authentication at the issuer', async () => {
    const person = newPerson({ ts: Math.floor(Date.now() / 1000) - 3600 })
    const browser = newBrowser()
    await signIn(person, browser)
    const change = { email: 'another@example.org' }
    assert.equal((await browser.post('/v1/auth/email', change)).status, 401)
    const { ts: _, ...now } = person
    await signIn(now, browser, { fresh: true })
    assert.equal((await browser.post('/v1/auth/email', change)).status, 204)
  })
})

describe('attacks', () => {
  /** A sign-in that has returned from the issuer, up to the callback. */
  async function returned(person = newPerson(), browser = newBrowser()) {
    example.person = person
    const callback = new URL(await example.visit(await start(browser)))
    return { browser, callback, person }
  }
  const refusedWithout = async (browser: CookieJar, callback: URL | string, result = 'refused') => {
    const tokens = example.paths.filter((path) => path === '/token').length
    assert.equal(await back(browser, String(callback)), `/app/#issuer=${result}`)
    assert.equal(await sessionOf(browser), undefined)
    return example.paths.filter((path) => path === '/token').length - tokens
  }

  test('a response that another browser started is rejected before its code is used (login CSRF)', async () => {
    const attacker = await returned()
    const victim = newBrowser()
    assert.equal(await refusedWithout(victim, attacker.callback, 'expired'), 0, 'without a cookie')
    await start(victim)
    assert.equal(
      await refusedWithout(victim, attacker.callback, 'expired'),
      0,
      "with the victim's own cookie",
    )
    assert.equal(await back(attacker.browser, String(attacker.callback)), '/app/', 'it is not used up')
  })

  test('a response cannot link the identity of another person (login CSRF of a link)', async () => {
    const { browser, password, userId } = await makeCustomer()
    const attacker = await returned()
    await browser.post('/v1/auth/issuers/example/link', linkBody(password))
    assert.equal(await back(browser, String(attacker.callback)), '/app/#issuer=expired')
    const logins = await database.query('select from control.external_logins where user_id = $1', [userId])
    assert.equal(logins.length, 0)
  })

  test("the state of another sign-in is rejected, with one's own code", async () => {
    const [one, two] = [await returned(), await returned()]
    const state = two.callback.searchParams.get('state') ?? ''
    const swapped = new URL(one.callback)
    swapped.searchParams.set('state', state)
    assert.equal(await refusedWithout(one.browser, swapped, 'expired'), 0)
    for (const change of [
      (search: URLSearchParams) => search.delete('state'),
      (search: URLSearchParams) => search.set('state', ''),
    ]) {
      const changed = new URL(two.callback)
      change(changed.searchParams)
      assert.equal(await refusedWithout(two.browser, changed, 'expired'), 0)
    }
    two.callback.searchParams.append('state', state)
    const twice = await two.browser.fetch(two.callback.pathname + two.callback.search, { redirect: 'manual' })
    assert.equal(twice.status, 400)
  })

  test('a state is used once, also by requests at the same time, and only for ten minutes', async () => {
    const { callback, person } = await returned()
    const cookie = async () => {
      const browser = newBrowser()
      example.person = person
      return { browser, callback: new URL(await example.visit(await start(browser))) }
    }
    const replayed = await cookie()
    const path = replayed.callback.pathname + replayed.callback.search
    const both = await Promise.all([1, 2].map(() => replayed.browser.fetch(path, { redirect: 'manual' })))
    assert.deepEqual(both.map(({ headers }) => headers.get('location')).sort(), [
      '/app/',
      '/app/#issuer=expired',
    ])
    assert.equal(await back(replayed.browser, String(replayed.callback)), '/app/#issuer=expired')
    assert.match(String(callback), /state=/)
    const late = await cookie()
    await database.query(
      `update control.external_sign_ins set expires_at = postern.now() - interval '1 second'`,
    )
    assert.equal(await refusedWithout(late.browser, late.callback, 'expired'), 0)
    await api.context.db.admin.transaction(purgeSignIns)
    assert.deepEqual(await database.query('select from control.external_sign_ins'), [])
  })

  test('a code of another sign-in is rejected: the verifier does not match (code injection)', async () => {
    const [one, two] = [await returned(), await returned()]
    const stolen = new URL(one.callback)
    stolen.searchParams.set('code', two.callback.searchParams.get('code') ?? '')
    await refusedWithout(one.browser, stolen)
    const third = await returned()
    await database.query(
      `update control.external_sign_ins set code_verifier = 'another-verifier-of-at-least-forty-three-characters'`,
    )
    await refusedWithout(third.browser, third.callback)
  })

  test('a token with the nonce of another sign-in is rejected, or without one', async () => {
    const { browser, callback } = await returned()
    await database.query(`update control.external_sign_ins set nonce = 'another'`)
    await refusedWithout(browser, callback)
    example.forge = ({ header, claims: { nonce: _, ...claims } }) => example.sign({ header, claims })
    const without = await returned()
    await refusedWithout(without.browser, without.callback)
  })

  test('a dishonest token is rejected: issuer, audience, time, algorithm, key, subject', async () => {
    const stranger = await generateKeyPair('RS256')
    const now = Math.floor(Date.now() / 1000)
    const b64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const changed =
      (change: object): NonNullable<OpenidProvider['forge']> =>
      ({ header, claims }) =>
        example.sign({ header, claims: { ...claims, ...change } })
    const forgeries: Record<string, NonNullable<OpenidProvider['forge']>> = {
      'another issuer': changed({ iss: other.url }),
      'the issuer with a slash': changed({ iss: `${example.url}/` }),
      'another audience': changed({ aud: 'another-client' }),
      'several audiences without azp': changed({ aud: ['postern', 'another-client'] }),
      'another authorized party': changed({ aud: ['postern', 'another-client'], azp: 'another-client' }),
      expired: changed({ iat: now - 7200, exp: now - 3600 }),
      'without an end': changed({ exp: undefined }),
      'not valid yet': changed({ nbf: now + 3600 }),
      'without a subject': changed({ sub: undefined }),
      'a subject that is too long': changed({ sub: 'x'.repeat(256) }),
      'a subject that is not ASCII': changed({ sub: 'päul' }),
      'alg none': ({ header, claims }) => `${b64({ ...header, alg: 'none' })}.${b64(claims)}.`,
      'another key': ({ header, claims }) => signWith(stranger.privateKey, { header, claims }),
      'another key id': ({ header, claims }) =>
        signWith(stranger.privateKey, { header: { ...header, kid: 'unknown' }, claims }),
      'the key of the other issuer': (token) => other.sign(token),
      'no signature': ({ header, claims }) => `${b64(header)}.${b64(claims)}.`,
      'a changed payload': async ({ header, claims }) => {
        const [head, , signature] = (await example.sign({ header, claims })).split('.')
        return `${head}.${b64({ ...claims, sub: 'another' })}.${signature}`
      },
      'the client secret as a key': ({ header, claims }) =>
        signWith(new TextEncoder().encode('a-client-secret-of-the-tests') as never, {
          header: { ...header, alg: 'HS256' },
          claims,
        }),
    }
    const before = await countUsers()
    for (const [name, forge] of Object.entries(forgeries)) {
      const { browser, callback } = await returned()
      example.forge = forge
      assert.equal(await back(browser, String(callback)), '/app/#issuer=refused', name)
      assert.equal(await sessionOf(browser), undefined, name)
      example.forge = undefined
    }
    assert.equal(await countUsers(), before)
    example.forge = changed({})
    const { browser, callback } = await returned()
    assert.equal(await back(browser, String(callback)), '/app/', 'a token that is not changed is accepted')
  })

  test('a response of another issuer is rejected (mix-up)', async () => {
    const one = await returned()
    const iss = one.callback.searchParams.get('iss')
    assert.equal(iss, example.url, 'the issuer names itself (RFC 9207)')
    const mixed = new URL(one.callback)
    mixed.searchParams.set('iss', other.url)
    await refusedWithout(one.browser, mixed)
    const absent = await returned()
    absent.callback.searchParams.delete('iss')
    await refusedWithout(absent.browser, absent.callback)
    const elsewhere = await returned()
    const path = new URL(elsewhere.callback)
    path.pathname = path.pathname.replace('/example/', '/other/')
    await refusedWithout(elsewhere.browser, path, 'expired')
  })

  test('the page to return to is on this site (open redirect)', async () => {
    for (const return_to of [
      'https://evil.example/',
      '//evil.example/',
      '/\\evil.example',
      '/app//evil.example',
      '/app/../v1/auth/sign-out',
      '/app/%2e%2e/',
      '/app/\n',
      '/app/?next=https://evil.example',
      '/app/#x',
      '/apple/',
      '/app',
      '/v1/auth/token',
      'javascript:alert(1)',
      `/app/${'a'.repeat(200)}`,
      // A pattern with nested quantifiers never ends.
      `/app/${'a'.repeat(150)}!`,
    ]) {
      const answer = await newBrowser().post('/v1/auth/issuers/example/start', { return_to })
      assert.equal(answer.status, 422, return_to)
    }
    assert.equal(
      await signIn(newPerson(), newBrowser(), { return_to: '/app/projects/12' }),
      '/app/projects/12',
    )
  })

  test('another site cannot start a sign-in, and one network can wait for 200 only', async () => {
    const foreign = await newBrowser().post(
      '/v1/auth/issuers/example/start',
      { return_to: '/app/' },
      { origin: 'https://evil.example' },
    )
    assert.equal(foreign.status, 401)
    await database.query(
      `insert into control.external_sign_ins
         (state_hash, browser_hash, issuer_id, nonce, code_verifier, return_to, network, expires_at)
       select sha256(n::text::bytea), sha256(('b' || n)::bytea), 'example', 'n', 'v', '/app/', '192.0.2.77', postern.now() + interval '1 minute'
         from generate_series(1, 199) n`,
    )
    const crowd = () => new CookieJar(api.url, { 'x-forwarded-for': '192.0.2.77' })
    const last = crowd()
    await start(last)
    const waiting = async () =>
      (
        await database.query<{ count: number }>(
          `select count(*)::int from control.external_sign_ins where network = '192.0.2.77'`,
        )
      )[0]?.count
    assert.equal(await waiting(), 200)
    await start(crowd())
    assert.equal(await waiting(), 200, 'the oldest is dropped')
    await start(last)
    assert.equal(await waiting(), 200)
    await start(newBrowser())
    await database.query('delete from control.external_sign_ins')
  })
})

describe('an issuer', () => {
  test('that is unreachable, or at a private address, is reported to the browser', async () => {
    const { private_networks: _, ...outside } = example.configuration
    const gone = { ...example.configuration, id: 'gone', label: 'Gone', issuer: 'https://127.0.0.1:9' }
    const misnamed = { ...other.configuration, id: 'misnamed', label: 'Misnamed', issuer: `${other.url}/` }
    const unreachable = await startApi(database, {
      POSTERN_SIGN_IN_ISSUERS: JSON.stringify([outside, gone, misnamed]),
    })
    for (const id of ['example', 'gone', 'misnamed']) {
      const answer = await newBrowser(unreachable.url).post(`/v1/auth/issuers/${id}/start`, {
        return_to: '/app/',
      })
      assert.equal(answer.status, 503, id)
      assert.equal(answer.headers.get('retry-after'), '5')
    }
    const lines = unreachable.logLines.filter((line) => line.includes('could not be loaded'))
    assert.equal(lines.length, 3)
    assert.ok(lines.every((line) => !line.includes('a-client-secret-of-the-tests')))
  })

  test('loads the metadata and the keys once', async () => {
    const of = (path: string) => example.paths.filter((one) => one === path).length
    assert.equal(of('/.well-known/openid-configuration') > 0, true)
    const before = [of('/.well-known/openid-configuration'), of('/jwks')]
    await signIn(newPerson())
    await signIn(newPerson())
    assert.deepEqual([of('/.well-known/openid-configuration'), of('/jwks')], before)
  })

  test('cannot send the server to another host or fill its memory', async () => {
    const forms: Record<string, unknown>[] = [
      { token_endpoint: 'https://127.0.0.1:1/token' },
      { token_endpoint: `${example.url.replace('https', 'http')}/token` },
      { token_endpoint: 'https://10.0.0.1/token' },
    ]
    for (const metadata of forms) {
      example.metadata = metadata
      const misled = await startApi(database, { POSTERN_SIGN_IN_ISSUERS: issuers })
      const result = await signIn(newPerson(), newBrowser(misled.url))
      assert.match(result, /^\/app\/#issuer=(unavailable|refused)$/)
    }
    example.metadata = { padding: 'x'.repeat(300_000) }
    const large = await startApi(database, { POSTERN_SIGN_IN_ISSUERS: issuers })
    const answer = await newBrowser(large.url).post('/v1/auth/issuers/example/start', { return_to: '/app/' })
    assert.equal(answer.status, 503)
  })
})

test('no secret of a sign-in is logged', () => {
  const logged = api.logLines.join('')
  assert.ok(logged.includes('sign-in at an issuer: refused'))
  assert.ok(!/eyJ[\w-]+\.eyJ|a-client-secret|code=|state=/.test(logged))
})
