import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../context/context.ts'
import { issuePasswordReset, resetAdministrator } from '../core/control/access/administrators.ts'
import { purgeDailyCounts, purgeResets } from '../core/control/access/password-reset.ts'
import { startApi } from '../testing/harness/api.ts'
import { CookieJar } from '../testing/harness/cookie-jar.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { sendAllSystemMail } from '../testing/harness/system-mail.ts'
import { totpCode } from '../testing/harness/totp.ts'
import { startMtaInbox } from '../testing/peers/mta-inbox.ts'

const inbox = await startMtaInbox()
const database = await testDatabase()
const api = await startApi(database, {
  ...{ POSTERN_SYSTEM_MAIL_FROM: 'postern@example.net', POSTERN_MTA_HOSTS: inbox.url },
  POSTERN_TRUSTED_PROXIES: '127.0.0.1',
})
const deps = workerDeps(api.context)
const { admin: adminDb, identity: identityDb } = api.context.db

let addresses = 0
const newBrowser = () => new CookieJar(api.url, { 'x-forwarded-for': `203.0.113.${++addresses}` })
const forgot = (email: string, browser = newBrowser()) => browser.post('/v1/auth/password/forgot', { email })
const reset = (token: string, new_password = 'a much better password') =>
  newBrowser().post('/v1/auth/password/reset', { token, new_password })
const sendMails = () => sendAllSystemMail(database, deps)
const mailsTo = (email: string) => inbox.mails.filter(({ to }) => to.includes(email))

/** The token in the last message to this address. */
function tokenFor(email: string): string {
  const text = mailsTo(email).at(-1)?.plain ?? ''
  const [, token] = /http:\/\/localhost:8080\/app\/reset-password#(pwr_[\w-]{43})\b/.exec(text) ?? []
  return token ?? assert.fail(`no link in: ${text}`)
}

async function mailedToken(email: string): Promise<string> {
  assert.equal((await forgot(email)).status, 204)
  await sendMails()
  return tokenFor(email)
}

/** A user who signs in with only a password. */
async function makeCustomer() {
  const made = await api.makeAdmin()
  await database.query(`update control.users set role = 'user', two_factor_enabled = false where id = $1`, [
    made.userId,
  ])
  return made
}

const userRow = (userId: number) =>
  database.query(
    'select role, is_active, two_factor_enabled, token_generation from control.users where id = $1',
    [userId],
  )

describe('auth.forgot-password', () => {
  test('returns identical responses and writes the same rows for an account and an address without one', async () => {
    const { email, userId } = await api.makeAdmin()
    const disabled = await api.makeAdmin()
    await database.query('update control.users set is_active = false where id = $1', [disabled.userId])
    const rows = async () =>
      (
        await database.query<{ resets: number; mails: number; counts: number }>(
          `select (select count(*)::int from control.password_resets) as resets,
                  (select count(*)::int from control.system_mails) as mails,
                  (select count(*)::int from control.daily_counts) as counts`,
        )
      )[0] ?? assert.fail()
    const seen = []
    for (const address of [email, 'missing@example.com', disabled.email]) {
      const before = await rows()
      const response = await forgot(address)
      const headers = [...response.headers].filter(([name]) => !/^(date|x-request-id)$/.test(name))
      const after = await rows()
      const added = [
        ...[after.resets - before.resets, after.mails - before.mails],
        after.counts - before.counts,
      ]
      seen.push([response.status, headers, await response.text(), added])
    }
    assert.deepEqual(seen[1], seen[0])
    assert.deepEqual(seen[2], seen[0])
    assert.equal(seen[0]?.[0], 204)
    await sendMails()
    assert.deepEqual(
      [mailsTo(email).length, mailsTo('missing@example.com').length, mailsTo(disabled.email).length],
      [1, 0, 0],
    )
    const left = await database.query('select user_id::int from control.password_resets')
    assert.deepEqual(left, [{ user_id: userId }])
    await sendMails()
    assert.equal(mailsTo(email).length, 1, 'a sent message is not sent again')
  })

  test('lets a customer without a password choose one, but no administrator', async () => {
    const makeWithoutPassword = async () => {
      const made = await makeCustomer()
      await database.query('delete from control.accounts where user_id = $1', [made.userId])
      await database.query(
        'insert into control.external_logins (issuer, subject, user_id) values ($1, $2, $3)',
        ['https://id.example.com', String(made.userId), made.userId],
      )
      return made
    }
    const [customer, administrator] = [await makeWithoutPassword(), await makeWithoutPassword()]
    await database.query(`update control.users set role = 'admin' where id = $1`, [administrator.userId])
    assert.equal((await forgot(administrator.email)).status, 204)
    assert.equal((await reset(await mailedToken(customer.email))).status, 204)
    // Undoing a change of address can leave no way to sign in.
    const other = await makeWithoutPassword()
    await database.query('delete from control.external_logins where user_id = $1', [other.userId])
    assert.equal((await forgot(other.email)).status, 204)
    assert.equal((await reset(await mailedToken(other.email))).status, 204)
    const { email } = customer
    const password = 'a much better password'
    assert.equal((await newBrowser().post('/v1/auth/sign-in', { email, password })).status, 200)
    assert.equal(mailsTo(administrator.email).length, 0)
  })

  test('sends an account at most five links per day, and rejects more than thirty requests from one network', async () => {
    const { email } = await api.makeAdmin()
    for (let n = 0; n < 8; n++) assert.equal((await forgot(email)).status, 204)
    await sendMails()
    assert.equal(mailsTo(email).length, 5)
    const browser = newBrowser()
    const statuses = []
    for (let n = 0; n < 32; n++) statuses.push((await forgot(`someone${n}@example.com`, browser)).status)
    assert.deepEqual(
      statuses,
      Array.from({ length: 32 }, (_, n) => (n < 30 ? 204 : 429)),
    )
  })

  test('keeps the token out of the database and the log', async () => {
    const { email } = await api.makeAdmin()
    const token = await mailedToken(email)
    const rows = await database.query<{ row: string }>(
      `select t::text as row from control.password_resets as t
       union all select t::text from control.system_mails as t`,
    )
    assert.ok(rows.length > 0)
    assert.ok(!JSON.stringify(rows).includes(token))
    assert.ok(!api.logLines.join('').includes(token))
  })

  test('returns 404 if the operator has not configured system mail', async () => {
    const silent = await startApi(database)
    const response = await new CookieJar(silent.url).post('/v1/auth/password/forgot', {
      email: 'a@example.com',
    })
    assert.equal(response.status, 404)
  })
})

describe('auth.reset-password', () => {
  test('sets the password once, revokes every session, and keeps the role and second factor', async () => {
    const { email, password, totpUri, userId } = await api.makeAdmin()
    const before = await userRow(userId)
    const browser = newBrowser()
    await browser.post('/v1/auth/sign-in', { email, password })
    assert.equal((await browser.post('/v1/auth/totp/code', { code: totpCode(totpUri) })).status, 204)
    const { token: access } = (await (await browser.post('/v1/auth/token')).json()) as { token: string }
    const waiting = newBrowser()
    await waiting.post('/v1/auth/sign-in', { email, password })
    const token = await mailedToken(email)
    const other = await mailedToken(email)
    assert.notEqual(token, other)

    assert.equal((await reset(token, 'short')).status, 422)
    assert.equal((await reset(token)).status, 204)
    for (const used of [token, other]) assert.equal((await reset(used)).status, 404)
    assert.equal((await browser.post('/v1/auth/token')).status, 401)
    const headers = { authorization: `Bearer ${access}` }
    assert.equal((await fetch(`${api.url}/v1/admin/plans`, { headers })).status, 401)
    const late = totpCode(totpUri, Date.now() + 30_000)
    assert.equal((await waiting.post('/v1/auth/totp/code', { code: late })).status, 401)

    assert.equal((await newBrowser().post('/v1/auth/sign-in', { email, password })).status, 401)
    const again = await newBrowser().post('/v1/auth/sign-in', { email, password: 'a much better password' })
    assert.deepEqual(await again.json(), { second_factor_required: true })
    assert.deepEqual(await userRow(userId), before)
  })

  test('clears the backoff caused by an attacker’s guesses', async () => {
    const { email } = await api.makeAdmin()
    await newBrowser().post('/v1/auth/sign-in', { email, password: 'wrong' })
    await database.query('update control.sign_in_failures set failures = 1000')
    assert.equal((await reset(await mailedToken(email))).status, 204)
    const answer = await newBrowser().post('/v1/auth/sign-in', { email, password: 'a much better password' })
    assert.equal(answer.status, 200)
  })

  test('returns the same response for an invented, used, expired or malformed token, and for a disabled user', async () => {
    const { email } = await api.makeAdmin()
    const expired = await mailedToken(email)
    await database.query(`update control.password_resets set expires_at = expires_at - interval '1 hour'`)
    const disabled = await api.makeAdmin()
    const ofDisabled = await mailedToken(disabled.email)
    await database.query('update control.users set is_active = false where id = $1', [disabled.userId])
    const texts = []
    for (const token of [expired, ofDisabled, `pwr_${'A'.repeat(43)}`, 'pwr_short', '', 'x']) {
      const response = await reset(token)
      assert.equal(response.status, 404)
      texts.push(await response.text())
    }
    assert.equal(new Set(texts).size, 1)
    await adminDb.transaction(purgeResets)
    assert.deepEqual(
      await database.query('select from control.password_resets where expires_at < postern.now()'),
      [],
    )
  })

  test('accepts one of two concurrent requests', async () => {
    const { email } = await api.makeAdmin()
    const token = await mailedToken(email)
    const answers = await Promise.all([1, 2, 3].map((n) => reset(token, `the password number ${n}`)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [204, 404, 404])
  })

  test('rejects a link that was created before the password was changed or reset on the command line', async () => {
    const { email, password } = await makeCustomer()
    const [asked, made] = [
      await mailedToken(email),
      await issuePasswordReset({ adminDb, identityDb, reason: 'Called by phone' }, email),
    ]
    const browser = newBrowser()
    await browser.post('/v1/auth/sign-in', { email, password })
    const passwords = { current_password: password, new_password: 'the password of my choice' }
    assert.equal((await browser.post('/v1/auth/password', passwords)).status, 204)
    for (const token of [asked, made]) assert.equal((await reset(token)).status, 404)
    const later = await mailedToken(email)
    const { auth } = api.context
    await resetAdministrator({ auth, adminDb, identityDb, reason: 'Mailbox was broken into' }, email)
    assert.equal((await reset(later)).status, 404)
  })

  test('leaves no session to a concurrent sign-in with the old password', async () => {
    const { email, password, userId } = await makeCustomer()
    await database.query(
      `create function control.reset_meanwhile() returns trigger language plpgsql as $$
       begin update control.accounts set password = 'another' where user_id = new.user_id; return new; end $$;
       create trigger reset_meanwhile before insert on control.sessions
         for each row execute function control.reset_meanwhile()`,
    )
    const browser = newBrowser()
    const answer = await browser.post('/v1/auth/sign-in', { email, password })
    await database.query('drop trigger reset_meanwhile on control.sessions')
    assert.deepEqual(
      [answer.status, await answer.json()],
      [401, { error: 'unauthenticated', message: 'The email address or the password is wrong.' }],
    )
    assert.equal(answer.headers.get('set-cookie'), null)
    assert.equal((await browser.post('/v1/auth/token')).status, 401)
    assert.deepEqual(await database.query('select from control.sessions where user_id = $1', [userId]), [])
  })

  test('cannot be undone by an attacker who changes the password to one they know', async () => {
    for (let round = 0; round < 3; round++) {
      const { email, password } = await makeCustomer()
      const token = await mailedToken(email)
      const thief = newBrowser()
      await thief.post('/v1/auth/sign-in', { email, password })
      const changing = thief.post('/v1/auth/password', {
        ...{ current_password: password, new_password: password },
      })
      const statuses = [(await reset(token)).status, (await changing).status]
      // If the password change commits first, the link becomes invalid; if the reset commits first, the session is
      // revoked.
      assert.ok(['204,401', '404,204'].includes(statuses.join()), statuses.join())
      const isReset = statuses[0] === 204
      const old = await newBrowser().post('/v1/auth/sign-in', { email, password })
      assert.equal(old.status, isReset ? 401 : 200)
    }
  })
})

describe('a link created by an operator', () => {
  test('lets a customer set a new password, grants no role, and is recorded in the audit log with its creator', async () => {
    const { email, userId, password } = await api.makeAdmin()
    await database.query(`update control.users set role = 'user' where id = $1`, [userId])
    const reason = 'Called by phone'
    const token = await issuePasswordReset({ adminDb, identityDb, reason }, email)
    assert.equal(
      (await newBrowser().post('/v1/auth/sign-in', { email, password })).status,
      200,
      'until it is used',
    )
    await sendMails()
    assert.deepEqual(mailsTo(email), [], 'it is shown, and not mailed')
    assert.equal((await reset(token)).status, 204)
    const [user] = await database.query('select role from control.users where id = $1', [userId])
    assert.deepEqual(user, { role: 'user' })
    const [row] = await database.query<{ operation: string; reason: string; whole: string }>(
      `select operation, reason, audit::text as whole from control.audit as audit
        where resource_type = 'user' and resource_id = $1 order by seq desc limit 1`,
      [String(userId)],
    )
    assert.deepEqual([row?.operation, row?.reason], ['users.reset-password', reason])
    assert.ok(!row?.whole.includes(token))
  })

  test('is not created for disabled or unknown users', async () => {
    const { email, userId } = await api.makeAdmin()
    await database.query('update control.users set is_active = false where id = $1', [userId])
    await assert.rejects(issuePasswordReset({ adminDb, identityDb }, email), /disabled/)
    await assert.rejects(issuePasswordReset({ adminDb, identityDb }, 'no.one@example.com'), /no user/)
  })
})

test("counters from earlier days are purged, and today's are kept", async () => {
  await forgot('counted@example.com')
  const count = async () => (await database.query('select from control.daily_counts')).length
  const today = await count()
  assert.ok(today > 0)
  await database.query(
    `insert into control.daily_counts (kind, key, day, count)
     values ('resets of account', sha256('x'), (postern.now() at time zone 'UTC')::date - 1, 1)`,
  )
  await adminDb.transaction(purgeDailyCounts)
  assert.equal(await count(), today)
})
