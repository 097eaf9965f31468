import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../context/context.ts'
import { purgeEmailChanges } from '../core/control/access/email-change.ts'
import { customers } from '../testing/fixtures/customers.ts'
import { startApi } from '../testing/harness/api.ts'
import { CookieJar } from '../testing/harness/cookie-jar.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { sendAllSystemMail } from '../testing/harness/system-mail.ts'
import { totpCode } from '../testing/harness/totp.ts'
import { startMtaInbox } from '../testing/peers/mta-inbox.ts'

/** The changes that users make to their own accounts. */
const inbox = await startMtaInbox()
const database = await testDatabase()
const api = await startApi(database, {
  ...{ POSTERN_SYSTEM_MAIL_FROM: 'postern@example.net', POSTERN_MTA_HOSTS: inbox.url },
  POSTERN_TRUSTED_PROXIES: '127.0.0.1',
})
const deps = workerDeps(api.context)
const { make, ownProject } = await customers(api, database)

let addresses = 0
const newBrowser = () => new CookieJar(api.url, { 'x-forwarded-for': `203.0.113.${++addresses}` })
const sendMails = () => sendAllSystemMail(database, deps)
const mailsTo = (email: string) => inbox.mails.filter(({ to }) => to.includes(email))

/** A user with only a password, who is signed in. */
async function makeCustomer() {
  const made = await api.makeAdmin()
  await database.query('delete from control.two_factors where user_id = $1', [made.userId])
  await database.query(`update control.users set role = 'user', two_factor_enabled = false where id = $1`, [
    made.userId,
  ])
  const browser = newBrowser()
  assert.equal((await signIn(made, browser)).status, 200)
  return { ...made, browser }
}

const signIn = ({ email, password }: { email: string; password: string }, browser = newBrowser()) =>
  browser.post('/v1/auth/sign-in', { email, password })
const confirm = (token: string) => newBrowser().post('/v1/auth/email/confirm', { token })
const undo = (token: string) => newBrowser().post('/v1/auth/email/undo', { token })

async function mailedToken(email: string, page: 'confirm-email' | 'undo-email'): Promise<string> {
  await sendMails()
  const text = mailsTo(email).at(-1)?.plain ?? ''
  const [, token] = new RegExp(`http://localhost:8080/app/${page}#(em[lu]_[\\w-]{43})\\b`).exec(text) ?? []
  return token ?? assert.fail(`no link in: ${text}`)
}

let made = 0
const newAddress = () => `new${++made}@example.org`

/** Changes the address and returns the token that undoes it. */
async function change(user: { browser: CookieJar; email: string; password: string }, email: string) {
  const answer = await user.browser.post('/v1/auth/email', { email, password: user.password })
  assert.equal(answer.status, 204, await answer.text())
  assert.equal((await confirm(await mailedToken(email, 'confirm-email'))).status, 204)
  return mailedToken(user.email, 'undo-email')
}

const emailOf = async (userId: number) =>
  (await database.query<{ email: string }>('select email from control.users where id = $1', [userId]))[0]
    ?.email

const operationsOf = async (browser: CookieJar) => {
  const { data } = (await (await browser.fetch('/v1/auth/activity')).json()) as {
    data: { operation: string; before: unknown; after: unknown }[]
  }
  return data
}

describe('auth.change-email', () => {
  test('changes the address when the link in the mail to the new one is opened, also for members', async () => {
    const user = await makeCustomer()
    const { owner, project } = await ownProject()
    await owner.post(`/projects/${project.id}/members`, { email: user.email, role: 'viewer' })
    await database.query(
      `update control.members set user_id = $1, joined_at = postern.now() where email = $2`,
      [user.userId, user.email],
    )
    const email = newAddress()
    const undoToken = await change(user, email)
    assert.match(undoToken, /^emu_/)
    assert.equal(await emailOf(user.userId), email)
    const members = await database.query('select email from control.members where user_id = $1', [
      user.userId,
    ])
    assert.deepEqual(members, [{ email }])
    assert.equal((await user.browser.fetch('/v1/auth/session')).status, 200, 'sessions stay')
    assert.equal((await signIn({ ...user, email })).status, 200)
    assert.equal((await signIn(user)).status, 401)
    const [entry] = (await operationsOf(user.browser)).filter(
      ({ operation }) => operation === 'auth.confirm-email',
    )
    assert.deepEqual([entry?.before, entry?.after], [{ email: user.email }, { email }])
  })

  test('requires the password or a recent second factor, and a session with the second factor', async () => {
    const user = await makeCustomer()
    const ask = (browser: CookieJar, password?: string) =>
      browser.post('/v1/auth/email', { email: newAddress(), ...(password !== undefined && { password }) })
    assert.equal((await ask(newBrowser(), user.password)).status, 401)
    assert.equal((await ask(user.browser)).status, 401)
    assert.equal((await ask(user.browser, 'wrong')).status, 401)
    assert.equal((await ask(user.browser, user.password)).status, 204)
    const admin = await api.makeAdmin()
    const browser = newBrowser()
    await signIn(admin, browser)
    assert.equal((await browser.post('/v1/auth/totp/code', { code: totpCode(admin.totpUri) })).status, 204)
    assert.equal((await ask(browser)).status, 204, 'the second factor was verified just now')
    await database.query(
      `update control.sessions set second_factor_at = second_factor_at - interval '11 minutes' where user_id = $1`,
      [admin.userId],
    )
    assert.equal((await ask(browser)).status, 401)
    assert.equal((await ask(browser, admin.password)).status, 204)
    await database.query(`update control.sessions set second_factor_at = null where user_id = $1`, [
      admin.userId,
    ])
    assert.equal((await ask(browser, admin.password)).status, 401)
  })

  test('gives the same response for an address that has an account, and says so by mail only', async () => {
    const [user, other] = [await makeCustomer(), await makeCustomer()]
    const { browser, password } = user
    const answer = await browser.post('/v1/auth/email', { email: other.email, password })
    assert.equal(answer.status, 204)
    await sendMails()
    assert.match(mailsTo(other.email).at(-1)?.plain ?? '', /already has an account, so nothing changes/)
    assert.equal(await emailOf(user.userId), user.email)
    // Somebody gets the address between the mail and the confirmation.
    const email = newAddress()
    await browser.post('/v1/auth/email', { email, password })
    const token = await mailedToken(email, 'confirm-email')
    await make.makeUser({ email })
    assert.equal((await confirm(token)).status, 409)
    assert.equal(await emailOf(user.userId), user.email)
  })

  test('accepts a link once, not after it has expired or was replaced, and not for another account', async () => {
    const user = await makeCustomer()
    const { browser, password } = user
    const tokens = []
    for (const email of [newAddress(), newAddress(), newAddress()]) {
      await browser.post('/v1/auth/email', { email, password })
      tokens.push(await mailedToken(email, 'confirm-email'))
    }
    const [replaced = '', , last = ''] = tokens
    assert.equal((await confirm(replaced)).status, 404)
    await database.query(`update control.email_changes set expires_at = expires_at - interval '1 day'`)
    assert.equal((await confirm(last)).status, 404)
    await api.context.db.admin.transaction(purgeEmailChanges)
    assert.deepEqual(
      await database.query('select from control.email_changes where user_id = $1', [user.userId]),
      [],
    )
    const email = newAddress()
    await browser.post('/v1/auth/email', { email, password })
    const token = await mailedToken(email, 'confirm-email')
    const statuses = (await Promise.all([confirm(token), confirm(token)])).map(({ status }) => status)
    assert.deepEqual(statuses.sort(), [204, 404])
    assert.equal((await undo(token)).status, 404, 'a link to confirm does not undo')
    const sixth = await browser.post('/v1/auth/email', { email: newAddress(), password })
    assert.equal((await browser.post('/v1/auth/email', { email, password })).status, 422, 'the same address')
    assert.deepEqual([sixth.status, await emailOf(user.userId)], [204, email])
    assert.equal((await browser.post('/v1/auth/email', { email: newAddress(), password })).status, 429)
  })

  test('invalidates the reset links that were sent to the old address', async () => {
    const user = await makeCustomer()
    await newBrowser().post('/v1/auth/password/forgot', { email: user.email })
    await sendMails()
    const [, token] = /#(pwr_[\w-]{43})/.exec(mailsTo(user.email).at(-1)?.plain ?? '') ?? []
    await change(user, newAddress())
    const reset = await newBrowser().post('/v1/auth/password/reset', {
      token,
      new_password: 'a much better one',
    })
    assert.equal(reset.status, 404)
  })
})

describe('auth.undo-email', () => {
  test('restores the address after several changes, and ends every session and link', async () => {
    const user = await makeCustomer()
    const [first, second] = [newAddress(), newAddress()]
    const token = await change(user, first)
    await user.browser.post('/v1/auth/email', { email: second, password: user.password })
    assert.equal((await confirm(await mailedToken(second, 'confirm-email'))).status, 204)
    const undoOfThief = await mailedToken(first, 'undo-email')
    assert.equal((await confirm(token)).status, 404, 'a link to undo does not confirm')
    assert.equal((await undo(token)).status, 204)
    assert.equal(await emailOf(user.userId), user.email)
    assert.equal((await user.browser.fetch('/v1/auth/session')).status, 401)
    for (const used of [token, undoOfThief]) assert.equal((await undo(used)).status, 404)
    assert.equal((await signIn(user)).status, 401, 'the thief may know the password')
    await newBrowser().post('/v1/auth/password/forgot', { email: user.email })
    await sendMails()
    const [, reset] = /#(pwr_[\w-]{43})/.exec(mailsTo(user.email).at(-1)?.plain ?? '') ?? []
    const password = 'a much better one'
    assert.equal(
      (await newBrowser().post('/v1/auth/password/reset', { token: reset, new_password: password })).status,
      204,
    )
    const browser = newBrowser()
    assert.equal((await signIn({ ...user, password }, browser)).status, 200)
    assert.ok((await operationsOf(browser)).some(({ operation }) => operation === 'auth.undo-email'))
  })

  test('removes the passkeys and the logins at issuers that a thief added, and keeps older ones', async () => {
    const user = await makeCustomer()
    const add = async (name: string, age: string) => {
      await database.query(
        `insert into control.passkeys (user_id, name, credential_id, public_key, counter, device_type, backed_up, created_at)
         values ($1, $2, $2, 'k', 0, 'singleDevice', false, postern.now() - $3::interval)`,
        [user.userId, name, age],
      )
      await database.query(
        `insert into control.external_logins (issuer, subject, user_id, created_at)
         values ('https://issuer.example', $2, $1, postern.now() - $3::interval)`,
        [user.userId, name, age],
      )
    }
    await add('of the owner', '2 days')
    await add('before the change', '1 hour')
    const token = await change(user, newAddress())
    await add('after the change', '0')
    assert.equal((await undo(token)).status, 204)
    const left = await database.query(
      `select name from control.passkeys where user_id = $1
       union all select subject from control.external_logins where user_id = $1`,
      [user.userId],
    )
    assert.deepEqual(left, [{ name: 'of the owner' }, { name: 'of the owner' }])
  })

  test('is possible for seven days, and not if another account has the old address', async () => {
    const user = await makeCustomer()
    const token = await change(user, newAddress())
    const [row] = await database.query<{ days: number }>(
      `select extract(day from expires_at - confirmed_at)::int as days from control.email_changes where user_id = $1`,
      [user.userId],
    )
    assert.equal(row?.days, 7)
    await make.makeUser({ email: user.email })
    assert.equal((await undo(token)).status, 409)
    await database.query(`update control.users set email = 'moved@example.org' where email = $1`, [
      user.email,
    ])
    await database.query(`update control.email_changes set expires_at = expires_at - interval '7 days'`)
    assert.equal((await undo(token)).status, 404)
  })
})

describe('auth.delete-account', () => {
  const remove = ({ browser, password }: { browser: CookieJar; password: string }) =>
    browser.post('/v1/auth/account/delete', { password })

  test('deletes the account, its memberships and its sessions', async () => {
    const user = await makeCustomer()
    const { owner, project } = await ownProject()
    await owner.post(`/projects/${project.id}/members`, { email: user.email, role: 'viewer' })
    await database.query(
      `update control.members set user_id = $1, joined_at = postern.now() where email = $2`,
      [user.userId, user.email],
    )
    assert.equal((await remove({ ...user, password: 'wrong' })).status, 401)
    assert.equal((await remove(user)).status, 204)
    assert.equal(await emailOf(user.userId), undefined)
    assert.equal((await user.browser.fetch('/v1/auth/session')).status, 401)
    assert.equal((await signIn(user)).status, 401)
    assert.deepEqual(await database.query('select from control.members where email = $1', [user.email]), [])
    const { body } = await owner.get(`/projects/${project.id}/activity`)
    assert.equal(body.data[0].operation, 'auth.delete-account')
  })

  test('is refused while the user owns projects, which the message names', async () => {
    const user = await makeCustomer()
    const { project } = await ownProject({ name: 'Web shop' })
    await database.query('update control.projects set user_id = $1 where id = $2', [user.userId, project.id])
    await database.query(
      `update control.members set user_id = $1, email = $3 where project_id = $2 and role = 'owner'`,
      [...[user.userId, project.id, user.email]],
    )
    const answer = await remove(user)
    assert.equal(answer.status, 409)
    const problem = (await answer.json()) as { error: string; message: string }
    assert.equal(problem.error, 'in_use')
    assert.ok(problem.message.includes(`Web shop (${project.id})`), problem.message)
    assert.equal(await emailOf(user.userId), user.email)
  })

  test('is refused to administrators, and to those who wrote notes as administrators', async () => {
    const user = await makeCustomer()
    const { project } = await ownProject()
    await database.query(`update control.users set role = 'admin' where id = $1`, [user.userId])
    assert.equal((await remove(user)).status, 409)
    await database.query(`update control.users set role = 'user' where id = $1`, [user.userId])
    await database.query(`insert into control.notes (project_id, text, author_id) values ($1, 'x', $2)`, [
      ...[project.id, user.userId],
    ])
    assert.equal((await remove(user)).status, 409)
    assert.equal(await emailOf(user.userId), user.email)
  })
})

describe('auth.end-other-sessions', () => {
  test('ends every session of the user except the current one', async () => {
    const [user, other] = [await makeCustomer(), await makeCustomer()]
    const second = newBrowser()
    await signIn(user, second)
    assert.equal((await user.browser.fetch('/v1/auth/sessions', { method: 'DELETE' })).status, 204)
    assert.equal((await user.browser.fetch('/v1/auth/session')).status, 200)
    assert.equal((await second.fetch('/v1/auth/session')).status, 401)
    assert.equal((await other.browser.fetch('/v1/auth/session')).status, 200)
    const [entry] = await operationsOf(user.browser)
    assert.deepEqual([entry?.operation, entry?.after], ['auth.end-other-sessions', { ended_sessions: 1 }])
  })
})
