import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../../../context/context.ts'
import { assertProblem } from '../../../testing/expectations/problem.ts'
import { customers } from '../../../testing/fixtures/customers.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { CookieJar } from '../../../testing/harness/cookie-jar.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { sendAllSystemMail } from '../../../testing/harness/system-mail.ts'
import { startMtaInbox } from '../../../testing/peers/mta-inbox.ts'
import { acceptInvitation } from './invitations.ts'

const inbox = await startMtaInbox()
const database = await testDatabase()
const settings = { POSTERN_SYSTEM_MAIL_FROM: 'postern@example.net', POSTERN_MTA_HOSTS: inbox.url }
const api = await startApi(database, settings)
const deps = workerDeps(api.context)
const { ownProject, stranger, make } = await customers(api, database)
const { owner, project } = await ownProject({ name: 'Web shop' })
const path = `/projects/${project.id}/members`
const password = 'correct horse battery staple'

const sendMail = () => sendAllSystemMail(database, deps)

let invited = 0

/** Invites an address and, by default, emails the invitation. */
async function invite({ isMailed = true } = {}) {
  const email = `invited${++invited}@example.org`
  const { status, body, text } = await owner.post(path, { email, role: 'developer' })
  assert.equal(status, 201, text)
  if (!isMailed) return { email, id: body.id as number, token: '' }
  await sendMail()
  return { email, id: body.id as number, token: tokenIn(mailTo(email)) }
}

const mailsTo = (email: string) => inbox.mails.filter(({ to }) => to.includes(email))
const mailTo = (email: string) => mailsTo(email).at(-1) ?? assert.fail(`no message to ${email}`)
const tokenIn = ({ plain }: { plain: string }): string =>
  /inv_[\w-]{43}/.exec(plain)?.[0] ?? assert.fail(`no token in: ${plain}`)

const join = (body: object, browser = new CookieJar(api.url)) => browser.post('/v1/auth/register', body)
const show = (token: string) => new CookieJar(api.url).post('/v1/auth/invitation', { token })

describe('an invitation message', () => {
  test('names the project and contains a token, of which only the hash is stored', async () => {
    const { email, id, token } = await invite()
    const { from, to, plain, html } = mailTo(email)
    assert.deepEqual([from, to], ['postern@example.net', [email]])
    for (const part of [
      '"Web shop"',
      `${project.id}`,
      'developer',
      `http://localhost:8080/app/invitation#${token}`,
    ]) {
      assert.ok(plain.includes(part), `${part} is not in: ${plain}`)
    }
    assert.ok(html.includes(token), html)
    const [row] = await database.query<{ whole: string; is_hash: boolean }>(
      `select members::text as whole, invitation_hash = sha256($2::text::bytea) as is_hash
         from control.members where id = $1`,
      [id, token],
    )
    assert.equal(row?.is_hash, true)
    assert.ok(!row.whole.includes(token))
    assert.ok(!api.logLines.join('').includes(token))
  })

  test("contains no customer text that could be a link: it shows the project's id and no user names", async () => {
    const phishing = 'Your mailbox is full: renew at https://phish.example/renew now'
    const { owner: mallory, project: shop } = await ownProject({ name: phishing })
    await database.query('update control.users set name = $2 where id = $1', [
      mallory.user.id,
      'Click evil.example',
    ])
    const { body } = await mallory.post(`/projects/${shop.id}/members`, {
      email: 'victim@example.net',
      role: 'viewer',
    })
    assert.equal(body.email, 'victim@example.net')
    await sendMail()
    const { plain, html } = mailTo('victim@example.net')
    assert.doesNotMatch(plain + html, /phish|renew|mailbox|evil|Click/)
    const addresses = [...plain.matchAll(/https?:\/\/[^\s/,]+/g)].map(([address]) => address)
    assert.deepEqual([...new Set(addresses)], ['http://localhost:8080'])
    assert.ok(plain.includes(`project number ${shop.id}`), plain)
  })

  test('is subject to a daily cap, even if the invitations are withdrawn', async () => {
    const capped = await startApi(database, { ...settings, POSTERN_MAX_INVITATIONS_PER_PROJECT_PER_DAY: '4' })
    const { ownProject: ownCapped } = await customers(capped, database)
    const { owner: mallory, project: shop } = await ownCapped()
    const statuses = []
    for (let n = 0; n < 30; n++) {
      const { status, body } = await mallory.post(`/projects/${shop.id}/members`, {
        email: `withdrawn${n}@example.net`,
        role: 'viewer',
      })
      statuses.push(status)
      if (status !== 201) continue
      await sendMail()
      await mallory.delete(`/projects/${shop.id}/members/${body.id}`)
    }
    assert.deepEqual(
      statuses,
      Array.from({ length: 30 }, (_, n) => (n < 4 ? 201 : 422)),
    )
    assert.equal(inbox.mails.filter(({ to }) => to[0]?.startsWith('withdrawn')).length, 4)
    await database.query(`update control.daily_counts set day = day - 1`)
    const tomorrow = await mallory.post(`/projects/${shop.id}/members`, {
      email: 'tomorrow@example.net',
      role: 'viewer',
    })
    assert.equal(tomorrow.status, 201, 'the next day starts at zero')
  })

  test('is not sent for a withdrawn or accepted invitation', async () => {
    const withdrawn = await invite({ isMailed: false })
    await owner.delete(`${path}/${withdrawn.id}`)
    const accepted = await invite()
    await (await stranger()).post('/invitations/accept', { token: accepted.token })
    await sendMail()
    assert.deepEqual([mailsTo(withdrawn.email).length, mailsTo(accepted.email).length], [0, 1])
  })

  test('is not sent if no MTA is configured, and this is logged', async () => {
    const { email, id } = await invite({ isMailed: false })
    const silent = await startApi(database)
    await sendAllSystemMail(database, workerDeps(silent.context))
    assert.match(silent.logLines.join('\n'), /POSTERN_SYSTEM_MAIL_FROM/)
    const [row] = await database.query<{ hash: Buffer | null }>(
      'select invitation_hash as hash from control.members where id = $1',
      [id],
    )
    assert.equal(row?.hash, null)
    await sendMail()
    assert.equal(mailsTo(email).length, 1, 'once it is configured')
  })
})

describe('invitations.accept', () => {
  test('makes the signed-in user the member, once', async () => {
    const { id, token } = await invite()
    const grace = await stranger()
    const answer = await grace.post('/invitations/accept', { token })
    assert.equal(answer.status, 200, answer.text)
    const { user_id, role, name, joined_at } = answer.body
    assert.deepEqual([answer.body.id, user_id, role, name], [id, grace.user.id, 'developer', grace.user.name])
    assert.ok(joined_at)
    assert.equal((await grace.get(`/projects/${project.id}`)).status, 200)
    const another = await stranger()
    assertProblem(await another.post('/invitations/accept', { token }), 404, 'not_found')
    assertProblem(await another.get(`/projects/${project.id}`), 404, 'not_found')
  })

  test('returns the first response if repeated with its Idempotency-Key', async () => {
    const { token } = await invite()
    const grace = await stranger()
    const headers = { 'idempotency-key': 'accept' }
    const first = await grace.post('/invitations/accept', { token }, headers)
    const again = await grace.post('/invitations/accept', { token }, headers)
    assert.deepEqual([again.status, again.text], [200, first.text])
  })

  test('is rejected for an existing member, and the invitation remains', async () => {
    const { token } = await invite()
    assertProblem(await owner.post('/invitations/accept', { token }), 409, 'already_exists')
    assert.equal((await (await stranger()).post('/invitations/accept', { token })).status, 200)
  })

  test('returns the same response for an invented, withdrawn, expired or malformed token', async () => {
    const grace = await stranger()
    const withdrawn = await invite()
    await owner.delete(`${path}/${withdrawn.id}`)
    const expired = await invite()
    await database.query(
      `update control.members set invited_at = invited_at - interval '14 days' where id = $1`,
      [expired.id],
    )
    const answers = []
    for (const token of [withdrawn.token, expired.token, `inv_${'A'.repeat(43)}`, 'inv_short', '', 'x']) {
      answers.push(await grace.post('/invitations/accept', { token }))
    }
    for (const answer of answers) {
      assertProblem(answer, 404, 'not_found')
      assert.equal(answer.text, answers[0]?.text)
    }
  })

  test('succeeds for one of two concurrent requests', async () => {
    const { token } = await invite()
    const people = await Promise.all(Array.from({ length: 8 }, stranger))
    const answers = await Promise.all(people.map((one) => one.post('/invitations/accept', { token })))
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [
      200,
      ...Array.from({ length: 7 }, () => 404),
    ])
  })

  test('is rejected for a disabled account', async () => {
    const { token } = await invite()
    const user = await make.makeUser()
    const database2 = openDatabase(database)
    await database.query('update control.users set is_active = false where id = $1', [user.id])
    const { rows } = await database2
      .asCustomer()
      .forProject(0)
      .transaction(async (tx) => ({ rows: await joinAs(tx, token, user.id) }))
    assert.equal(rows, 'not_found')
  })
})

async function joinAs(tx: Parameters<typeof acceptInvitation>[0], token: string, userId: number) {
  try {
    await acceptInvitation(tx, token, userId)
    return 'joined'
  } catch (error) {
    return (error as { code?: string }).code
  }
}

describe('auth.show-invitation', () => {
  test('shows the bearer of the token to what they are invited, and whether they have an account', async () => {
    const { email, token } = await invite()
    const shown = { email, project_id: project.id, project_name: project.name, role: 'developer' }
    const fields = async () => {
      const { expires_at, ...rest } = (await (await show(token)).json()) as Record<string, unknown>
      assert.ok(Date.parse(String(expires_at)) > Date.now())
      return rest
    }
    assert.deepEqual(await fields(), { ...shown, has_account: false })
    await make.makeUser({ email })
    assert.deepEqual(await fields(), { ...shown, has_account: true })
  })

  test('rejects a token that is invented, used, withdrawn or expired', async () => {
    const [used, withdrawn, expired] = [await invite(), await invite(), await invite()]
    await join({ token: used.token, name: 'Grace', password })
    await owner.delete(`${path}/${withdrawn.id}`)
    await database.query(
      `update control.members set invited_at = invited_at - interval '14 days' where id = $1`,
      [expired.id],
    )
    const texts = []
    for (const token of [used.token, withdrawn.token, expired.token, `inv_${'A'.repeat(43)}`, '']) {
      const answer = await show(token)
      assert.equal(answer.status, 404)
      texts.push(await answer.text())
    }
    assert.equal(new Set(texts).size, 1)
  })
})

describe('auth.register-invited', () => {
  test('creates an account with the invited address that is signed in and is a member', async () => {
    const { email, id, token } = await invite()
    const browser = new CookieJar(api.url)
    const response = await join({ token, name: ' Grace ', password }, browser)
    assert.equal(response.status, 200)
    const member = (await response.json()) as Record<string, unknown>
    assert.deepEqual(
      [member['id'], member['email'], member['name'], member['role']],
      [id, email, 'Grace', 'developer'],
    )
    const drawn = (await (await browser.post('/v1/auth/token')).json()) as { token: string }
    const shown = await fetch(`${api.url}/v1/projects/${project.id}`, {
      headers: { authorization: `Bearer ${drawn.token}` },
    })
    assert.equal(shown.status, 200)
    const [user] = await database.query<{ email_verified: boolean; role: string }>(
      'select email_verified, role from control.users where email = $1',
      [email],
    )
    assert.deepEqual(user, { email_verified: true, role: 'user' })
    assert.equal((await join({ token, name: 'Mallory', password })).status, 404)
  })

  test('is rejected if the address has since been registered, and the invitation remains', async () => {
    const { email, token } = await invite()
    await make.makeUser({ email })
    assert.equal((await join({ token, name: 'Grace', password })).status, 409)
    assert.equal((await (await stranger()).post('/invitations/accept', { token })).status, 200)
  })

  test('requires a name and a password of twelve characters, and creates nothing otherwise', async () => {
    const { email, token } = await invite()
    for (const body of [
      { token, name: 'Grace', password: 'short' },
      { token, name: '', password },
      { token, name: '   ', password },
      { token, name: 'Gr\0ace', password },
      { token, password },
    ]) {
      assert.equal((await join(body)).status, 422, JSON.stringify(body))
    }
    assert.deepEqual(await database.query('select from control.users where email = $1', [email]), [])
    assert.equal((await join({ token: 'inv_no', name: 'Grace', password })).status, 404)
  })

  test('is rate-limited per client address', async () => {
    const narrow = await startApi(database, { POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS: '3' })
    const statuses = []
    for (let n = 0; n < 5; n++) {
      const browser = new CookieJar(narrow.url)
      const response = await browser.post('/v1/auth/register', { token: 'inv_no', name: 'Grace', password })
      statuses.push(response.status)
    }
    assert.deepEqual(statuses, [404, 404, 404, 429, 429])
  })
})
