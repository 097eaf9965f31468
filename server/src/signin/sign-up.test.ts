import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../context/context.ts'
import { purgeSignUps } from '../core/control/access/sign-up.ts'
import { startApi } from '../testing/harness/api.ts'
import { CookieJar } from '../testing/harness/cookie-jar.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { sendAllSystemMail } from '../testing/harness/system-mail.ts'
import { startMtaInbox } from '../testing/peers/mta-inbox.ts'

const inbox = await startMtaInbox()
const database = await testDatabase()
const mailing = {
  ...{ POSTERN_SYSTEM_MAIL_FROM: 'postern@example.net', POSTERN_MTA_HOSTS: inbox.url },
  POSTERN_TRUSTED_PROXIES: '127.0.0.1',
}
const api = await startApi(database, { ...mailing, POSTERN_CUSTOMER_SIGN_UP: 'true' })
const deps = workerDeps(api.context)

let addresses = 0
const newBrowser = (at = api) => new CookieJar(at.url, { 'x-forwarded-for': `203.0.113.${++addresses}` })
const password = 'a long enough password'
const signUp = (email: string, browser = newBrowser()) =>
  browser.post('/v1/auth/sign-up', { email, name: 'Cleo', password })
const confirm = (token: string, given = password, browser = newBrowser()) =>
  browser.post('/v1/auth/sign-up/confirm', { token, password: given })
const sendMails = () => sendAllSystemMail(database, deps)
const mailsTo = (email: string) => inbox.mails.filter(({ to }) => to.includes(email.toLowerCase()))

async function mailedToken(email: string): Promise<string> {
  assert.equal((await signUp(email)).status, 204)
  await sendMails()
  const text = mailsTo(email).at(-1)?.plain ?? ''
  const [, token] = /http:\/\/localhost:8080\/app\/confirm-sign-up#(sup_[\w-]{43})\b/.exec(text) ?? []
  return token ?? assert.fail(`no link in: ${text}`)
}

const usersWith = (email: string) =>
  database.query('select name, role, email_verified from control.users where email = $1', [email])

describe('auth.sign-up', () => {
  test('creates the account when the link is confirmed with the password, and signs in', async () => {
    const email = 'cleo@example.com'
    const token = await mailedToken('Cleo@Example.com')
    assert.deepEqual(await usersWith(email), [], 'not before the link is confirmed')
    const early = await newBrowser().post('/v1/auth/sign-in', { email, password })
    assert.equal(early.status, 401)
    assert.equal((await confirm(token, 'another password')).status, 401)
    assert.deepEqual(await usersWith(email), [])

    const browser = newBrowser()
    assert.equal((await confirm(token, password, browser)).status, 204)
    assert.deepEqual(await usersWith(email), [{ name: 'Cleo', role: 'user', email_verified: true }])
    const session = (await (await browser.fetch('/v1/auth/session')).json()) as { user: { email: string } }
    assert.equal(session.user.email, email)
    const { data } = (await (await browser.fetch('/v1/auth/activity')).json()) as {
      data: { operation: string }[]
    }
    assert.deepEqual(
      data.map(({ operation }) => operation),
      ['auth.sign-in', 'auth.confirm-sign-up'],
    )
    assert.equal((await confirm(token)).status, 404, 'a link can be used once')
  })

  test('tells a person who has an account by mail only, and changes nothing', async () => {
    const { email } = await api.makeAdmin()
    const before = await database.query('select * from control.users where email = $1', [email])
    assert.equal((await signUp(email)).status, 204)
    await sendMails()
    assert.match(mailsTo(email).at(-1)?.plain ?? '', /already has an account/)
    assert.deepEqual(await database.query('select * from control.users where email = $1', [email]), before)
    assert.deepEqual(
      await database.query('select token_hash, password_hash from control.sign_ups where email = $1', [
        email,
      ]),
      [{ token_hash: null, password_hash: null }],
    )
  })

  test('rejects an expired, invented or malformed link, and one whose address now has an account', async () => {
    const expired = await mailedToken('late@example.com')
    await database.query(`update control.sign_ups set expires_at = expires_at - interval '1 day'`)
    const texts = []
    for (const token of [expired, `sup_${'A'.repeat(43)}`, 'sup_short', '', `pwr_${'A'.repeat(43)}`]) {
      const answer = await confirm(token)
      assert.equal(answer.status, 404)
      texts.push(await answer.text())
    }
    assert.equal(new Set(texts).size, 1)
    await api.context.db.admin.transaction(purgeSignUps)
    assert.deepEqual(
      await database.query('select from control.sign_ups where expires_at < postern.now()'),
      [],
    )
    const taken = await mailedToken('taken@example.com')
    await api.makeAdmin('taken@example.com')
    assert.equal((await confirm(taken)).status, 409)
  })

  test('accepts one of two concurrent confirmations, and invalidates other links to the address', async () => {
    const email = 'twice@example.com'
    const [first, second] = [await mailedToken(email), await mailedToken(email)]
    const statuses = (await Promise.all([confirm(first), confirm(second)])).map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 204).length, 1, statuses.join())
    assert.equal((await usersWith(email)).length, 1)
    assert.deepEqual(await database.query('select from control.sign_ups where email = $1', [email]), [])
  })

  test('is limited per network, per address and over all', async () => {
    const browser = newBrowser()
    const statuses = []
    for (let n = 0; n < 12; n++) statuses.push((await signUp(`n${n}@example.com`, browser)).status)
    assert.deepEqual(
      statuses,
      Array.from({ length: 12 }, (_, n) => (n < 10 ? 204 : 429)),
    )
    for (let n = 0; n < 5; n++) assert.equal((await signUp('often@example.com')).status, 204)
    await sendMails()
    assert.equal(mailsTo('often@example.com').length, 3)
    await database.query(`update control.daily_counts set count = 500 where kind = 'sign-ups'`)
    const full = await signUp('late@example.com')
    assert.equal(full.status, 429)
    assert.ok(Number(full.headers.get('retry-after')) > 0)
  })

  test('is not offered unless the operator allows it and the installation sends mail', async () => {
    for (const settings of [mailing, { POSTERN_CUSTOMER_SIGN_UP: 'true' }]) {
      const closed = await startApi(database, settings)
      const shown = await (await fetch(`${closed.url}/v1/installation`)).json()
      assert.equal((shown as { sign_up: boolean }).sign_up, false)
      const browser = new CookieJar(closed.url)
      assert.equal((await signUp('cleo@example.com', browser)).status, 404)
      assert.equal((await confirm(`sup_${'A'.repeat(43)}`, password, browser)).status, 404)
    }
  })

  test('keeps tokens and passwords out of the database and the log', async () => {
    await database.query('delete from control.daily_counts')
    const token = await mailedToken('secret@example.com')
    const rows = await database.query<{ row: string }>(
      `select t::text as row from control.sign_ups as t union all select t::text from control.system_mails as t`,
    )
    for (const secret of [token, password]) {
      assert.ok(!JSON.stringify(rows).includes(secret))
      assert.ok(!api.logLines.join('').includes(secret))
    }
  })
})
