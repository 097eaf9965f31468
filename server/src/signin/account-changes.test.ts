import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../context/context.ts'
import { mailedPerHour, purgeAccountChanges, userOperations } from '../core/control/access/account-changes.ts'
import {
  linkAdministrator,
  resetAdministrator,
  resetSecondFactor,
  unlinkAdministrator,
} from '../core/control/access/administrators.ts'
import { startApi } from '../testing/harness/api.ts'
import { CookieJar } from '../testing/harness/cookie-jar.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { sendAllSystemMail } from '../testing/harness/system-mail.ts'
import { totpCode } from '../testing/harness/totp.ts'
import { startMtaInbox } from '../testing/peers/mta-inbox.ts'
import { startOpenidProvider } from '../testing/peers/openid-provider.ts'
import { createPasskeyAuthenticator } from '../testing/peers/passkey-authenticator.ts'

/** Mail about changes to the ways in which a person signs in. */
const inbox = await startMtaInbox()
const issuer = await startOpenidProvider('example')
issuer.register(['http://localhost:8080'])
const database = await testDatabase()
const api = await startApi(database, {
  ...{ POSTERN_SYSTEM_MAIL_FROM: 'postern@example.net', POSTERN_MTA_HOSTS: inbox.url },
  POSTERN_SIGN_IN_ISSUERS: JSON.stringify([issuer.configuration]),
  POSTERN_TRUSTED_PROXIES: '127.0.0.1',
})
const deps = workerDeps(api.context)
const { auth, db } = api.context
const operator = { auth, adminDb: db.admin, identityDb: db.identity, reason: 'Lost phone' }

const userAgent = 'Evil/1.0 https://evil.example'
let addresses = 0
const newBrowser = () =>
  new CookieJar(api.url, {
    'x-forwarded-for': `203.0.113.${++addresses % 250}`,
    'user-agent': userAgent,
  })

/** The mail to an account that no earlier call returned. */
const seen = new Set<unknown>()
async function newMailTo(email: string) {
  await sendAllSystemMail(database, deps)
  const mails = inbox.mails.filter((mail) => mail.to.includes(email) && !seen.has(mail))
  for (const mail of mails) seen.add(mail)
  return mails
}

interface Person {
  userId: number
  email: string
  password: string
  totpUri: string
  browser: CookieJar
}

/** A customer with an authenticator app, who is signed in with both factors. */
async function makeCustomer(): Promise<Person> {
  const made = await api.makeAdmin()
  await database.query(`update control.users set role = 'user' where id = $1`, [made.userId])
  const browser = newBrowser()
  await browser.post('/v1/auth/sign-in', { email: made.email, password: made.password })
  const { status } = await browser.post('/v1/auth/totp/code', { code: totpCode(made.totpUri) })
  assert.equal(status, 204)
  return { ...made, browser }
}

async function withoutAuthenticator({ userId }: Person): Promise<void> {
  await database.query('delete from control.two_factors where user_id = $1', [userId])
  await database.query('update control.users set two_factor_enabled = false where id = $1', [userId])
}

async function done(response: Promise<Response>): Promise<void> {
  const answer = await response
  assert.ok(answer.ok, `${answer.status} ${await answer.text()}`)
}
const refused = async (response: Promise<Response>) => assert.ok((await response).status >= 400)

async function bodyOf<T>(response: Promise<Response>): Promise<T> {
  const answer = await response
  const text = await answer.text()
  assert.equal(answer.status, 200, text)
  return JSON.parse(text) as T
}

async function resetToken({ email }: Person): Promise<string> {
  await done(newBrowser().post('/v1/auth/password/forgot', { email }))
  const [mail] = await newMailTo(email)
  return /#(pwr_[\w-]{43})/.exec(mail?.plain ?? '')?.[1] ?? assert.fail('no link')
}

/** Returns the options for a passkey. */
const startPasskey = ({ browser, password }: Person) =>
  bodyOf<{ options: { challenge: string } }>(browser.post('/v1/auth/passkeys/options', { password }))

async function addPasskey(person: Person): Promise<number> {
  const { options } = await startPasskey(person)
  const credential = createPasskeyAuthenticator('http://localhost:8080').create(options)
  const { id } = await bodyOf<{ id: number }>(
    person.browser.post('/v1/auth/passkeys', { name: 'Laptop', credential }),
  )
  return id
}

let subjects = 0
/** Returns the page to which the browser goes. */
async function linkLogin({ browser, password }: Person, sub = `sub-${++subjects}`): Promise<string> {
  issuer.person = { sub, email: 'person@example.org', email_verified: true, name: 'Person' }
  const { url } = await bodyOf<{ url: string }>(
    browser.post('/v1/auth/issuers/example/link', { return_to: '/app/account', password }),
  )
  const { pathname, search } = new URL(await issuer.visit(url))
  const answer = await browser.fetch(pathname + search, { redirect: 'manual' })
  return answer.headers.get('location') ?? ''
}

const passwords = (current_password: string) => ({ current_password, new_password: 'a much better password' })

interface Case {
  /** What happened before, and is not about this change. */
  prepare?: (person: Person) => Promise<unknown>
  fail: (person: Person, prepared: never) => Promise<unknown>
  act: (person: Person, prepared: never) => Promise<unknown>
}

type Mailed = {
  [Operation in keyof typeof userOperations]: (typeof userOperations)[Operation] extends null
    ? never
    : Operation
}[keyof typeof userOperations]

const external = ['https://login.example.com', 'subject'] as const

const cases: Record<Mailed, Case> = {
  'auth.change-password': {
    fail: ({ browser }) => refused(browser.post('/v1/auth/password', passwords('wrong password'))),
    act: ({ browser, password }) => done(browser.post('/v1/auth/password', passwords(password))),
  },
  'auth.reset-password': {
    prepare: resetToken,
    fail: () =>
      refused(
        newBrowser().post('/v1/auth/password/reset', {
          token: `pwr_${'x'.repeat(43)}`,
          new_password: 'a much better password',
        }),
      ),
    act: (_, token: string) =>
      done(newBrowser().post('/v1/auth/password/reset', { token, new_password: 'a much better password' })),
  },
  'auth.confirm-totp': {
    async prepare(person) {
      await withoutAuthenticator(person)
      const { browser, password } = person
      return (await bodyOf<{ totp_uri: string }>(browser.post('/v1/auth/totp', { password }))).totp_uri
    },
    fail: ({ browser }) => refused(browser.post('/v1/auth/totp/code', { code: '000000' })),
    act: ({ browser }, uri: string) => done(browser.post('/v1/auth/totp/code', { code: totpCode(uri) })),
  },
  'auth.replace-totp': {
    prepare: async ({ browser, password }) =>
      (await bodyOf<{ totp_uri: string }>(browser.post('/v1/auth/totp/replacement', { password }))).totp_uri,
    fail: ({ browser }) => refused(browser.post('/v1/auth/totp/replacement/code', { code: '000000' })),
    act: ({ browser }, uri: string) =>
      done(browser.post('/v1/auth/totp/replacement/code', { code: totpCode(uri) })),
  },
  'auth.disable-totp': {
    fail: ({ browser }) => refused(browser.post('/v1/auth/totp/disable', { password: 'wrong' })),
    act: ({ browser, password }) => done(browser.post('/v1/auth/totp/disable', { password })),
  },
  'auth.renew-backup-codes': {
    fail: ({ browser }) => refused(browser.post('/v1/auth/backup-codes', { password: 'wrong' })),
    act: ({ browser, password }) => done(browser.post('/v1/auth/backup-codes', { password })),
  },
  'auth.add-passkey': {
    async fail(person) {
      await startPasskey(person)
      const credential = createPasskeyAuthenticator('http://localhost:8080').create({ challenge: 'AAAA' })
      await refused(person.browser.post('/v1/auth/passkeys', { name: 'Laptop', credential }))
    },
    act: addPasskey,
  },
  'auth.delete-passkey': {
    prepare: addPasskey,
    fail: ({ browser }) => refused(browser.fetch('/v1/auth/passkeys/999999', { method: 'DELETE' })),
    act: ({ browser }, id: number) => done(browser.fetch(`/v1/auth/passkeys/${id}`, { method: 'DELETE' })),
  },
  'auth.link-login': {
    async prepare() {
      const other = await makeCustomer()
      await linkLogin(other, 'taken')
      return 'taken'
    },
    fail: async (person, sub: string) => assert.match(await linkLogin(person, sub), /taken$/),
    act: async (person) => assert.match(await linkLogin(person), /linked$/),
  },
  'auth.unlink-login': {
    async prepare(person) {
      await linkLogin(person)
      const { data } = await bodyOf<{ data: { id: number }[] }>(person.browser.fetch('/v1/auth/logins'))
      return data[0]?.id
    },
    fail: ({ browser }, id: number) =>
      refused(browser.post(`/v1/auth/logins/${id}/unlink`, { password: 'wrong' })),
    act: ({ browser, password }, id: number) =>
      done(browser.post(`/v1/auth/logins/${id}/unlink`, { password })),
  },
  'users.reset': {
    fail: () => assert.rejects(resetAdministrator(operator, 'no.one@example.com')),
    act: ({ email }) => resetAdministrator(operator, email),
  },
  'users.reset-second-factor': {
    fail: async ({ userId, email }) => {
      const setRole = (role: string) =>
        database.query('update control.users set role = $2 where id = $1', [userId, role])
      await setRole('admin')
      await assert.rejects(resetSecondFactor(operator, email), /administrator/)
      await setRole('user')
    },
    act: ({ email }) => resetSecondFactor(operator, email),
  },
  'users.link': {
    async prepare() {
      const other = await makeCustomer()
      await linkAdministrator(operator, other.email, external[0], 'taken')
    },
    fail: ({ email }) => assert.rejects(linkAdministrator(operator, email, external[0], 'taken')),
    act: ({ email }) => linkAdministrator(operator, email, ...external),
  },
  'users.unlink': {
    prepare: async ({ email }) => linkAdministrator(operator, email, external[0], 'mine'),
    fail: ({ email }) => assert.rejects(unlinkAdministrator(operator, email, external[0], 'other')),
    act: ({ email }) => unlinkAdministrator(operator, email, external[0], 'mine'),
  },
}

describe('a change to the ways to sign in is mailed once, and not if it failed:', () => {
  for (const [operation, { prepare, fail, act }] of Object.entries(cases)) {
    test(operation, async () => {
      const person = await makeCustomer()
      const prepared = (await prepare?.(person)) as never
      await newMailTo(person.email)
      await fail(person, prepared)
      assert.deepEqual(await newMailTo(person.email), [])
      await act(person, prepared)
      const [mail = assert.fail('no mail'), ...others] = await newMailTo(person.email)
      assert.deepEqual(others, [])
      const sentence = userOperations[operation as Mailed]
      assert.ok(mail.plain.replaceAll(/\s+/g, ' ').includes(sentence), mail.plain)
      assert.match(mail.plain, /Time of the change: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/)
      assert.doesNotMatch(mail.text, /Evil|evil|(?:pwr|eml|emu|inv)_|#/)
      assert.ok(!mail.text.includes(person.password))
    })
  }
})

async function renewCodes(person: Person, times: number): Promise<void> {
  for (let n = 0; n < times; n++) {
    await done(person.browser.post('/v1/auth/backup-codes', { password: person.password }))
    await database.query('delete from control.sign_in_rates')
  }
}

test('an account gets at most five such messages in an hour, and the last one says so', async () => {
  const person = await makeCustomer()
  await renewCodes(person, mailedPerHour + 2)
  const mails = await newMailTo(person.email)
  assert.equal(mails.length, mailedPerHour)
  const last = mails.filter(({ plain }) =>
    plain.replaceAll(/\s+/g, ' ').includes('Further ones are not mailed'),
  )
  assert.equal(last.length, 1)
  const other = await makeCustomer()
  await renewCodes(other, 1)
  assert.equal((await newMailTo(other.email)).length, 1, 'the limit is per account')
  await database.query(
    `update control.account_changes set created_at = created_at - interval '61 minutes' where user_id = $1`,
    [person.userId],
  )
  await renewCodes(person, 1)
  assert.equal((await newMailTo(person.email)).length, 1)
})

test('the message goes to the address at the time of the change', async () => {
  const person = await makeCustomer()
  await renewCodes(person, 1)
  const thief = 'thief@example.org'
  await database.query(
    `insert into control.email_changes (user_id, old_email, new_email, confirmed_at, expires_at)
     values ($1, $2, $3, postern.now() + interval '1 second', postern.now() + interval '7 days')`,
    [person.userId, person.email, thief],
  )
  await database.query('update control.users set email = $2 where id = $1', [person.userId, thief])
  assert.equal((await newMailTo(person.email)).length, 1)
  assert.deepEqual(await newMailTo(thief), [])
})

test('a change is deleted when its message is of no use any more, and with its account', async () => {
  const [person, other] = [await makeCustomer(), await makeCustomer()]
  for (const one of [person, other]) await renewCodes(one, 1)
  const left = async () =>
    (
      await database.query<{ user_id: number }>(
        'select user_id::int from control.account_changes where user_id = any($1) order by user_id',
        [[person.userId, other.userId]],
      )
    ).map(({ user_id }) => user_id)
  await database.query(
    `update control.account_changes set created_at = created_at - interval '8 days' where user_id = $1`,
    [person.userId],
  )
  await db.admin.transaction(purgeAccountChanges)
  assert.deepEqual(await left(), [other.userId])
  assert.deepEqual(await newMailTo(person.email), [], 'there is nothing to tell any more')
  await done(other.browser.post('/v1/auth/account/delete', { password: other.password }))
  assert.deepEqual(await left(), [])
})
