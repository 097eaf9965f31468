import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, type TestContext, test } from 'node:test'
import { workerDeps } from '../context/context.ts'
import { customers } from '../testing/fixtures/customers.ts'
import { startApi } from '../testing/harness/api.ts'
import { CookieJar } from '../testing/harness/cookie-jar.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { recordStatements } from '../testing/harness/statements.ts'
import { sendAllSystemMail } from '../testing/harness/system-mail.ts'
import { startMtaInbox } from '../testing/peers/mta-inbox.ts'

/** What strangers learn about accounts, and whether they can forge links. */
const inbox = await startMtaInbox()
const database = await testDatabase()
const api = await startApi(database, {
  ...{ POSTERN_SYSTEM_MAIL_FROM: 'postern@example.net', POSTERN_MTA_HOSTS: inbox.url },
  ...{ POSTERN_CUSTOMER_SIGN_UP: 'true', POSTERN_TRUSTED_PROXIES: '127.0.0.1' },
})
const deps = workerDeps(api.context)
const { ownProject } = await customers(api, database)
const { owner, project } = await ownProject()

let addresses = 0
const newBrowser = () => new CookieJar(api.url, { 'x-forwarded-for': `203.0.113.${++addresses}` })
const password = 'a long enough password'
let unknown = 0
const newAddress = () => `unknown${++unknown}@example.com`

/** A session of an administrator with only a password, to request another address. */
const user = await api.makeAdmin()
await database.query(
  `update control.users set role = 'user', two_factor_enabled = false where id = ${user.userId}`,
)
await database.query(`delete from control.two_factors where user_id = ${user.userId}`)
const session = newBrowser()
await session.post('/v1/auth/sign-in', { email: user.email, password: user.password })

interface Shown {
  status: number
  headers: [string, string][]
  text: string
}

const shown = async (response: Response): Promise<Shown> => ({
  status: response.status,
  headers: [...response.headers].filter(
    ([name]) => !/^(date|x-request-id|ratelimit.*|etag|location)$/.test(name),
  ),
  text: await response.text(),
})

const requests: Record<string, (email: string) => Promise<Shown>> = {
  'auth.sign-in': async (email) =>
    shown(await newBrowser().post('/v1/auth/sign-in', { email, password: 'not the password' })),
  'auth.sign-up': async (email) =>
    shown(await newBrowser().post('/v1/auth/sign-up', { email, name: 'Cleo', password })),
  'auth.forgot-password': async (email) =>
    shown(await newBrowser().post('/v1/auth/password/forgot', { email })),
  'auth.change-email': async (email) =>
    shown(await session.post('/v1/auth/email', { email, password: user.password })),
  'members.create': async (email) => {
    const { status, text } = await owner.post(`/projects/${project.id}/members`, { email, role: 'viewer' })
    // The member's own address, id and times.
    const own = /"(?:email|id|invited_at|created_at|updated_at)":(?:"[^"]*"|\d+)/g
    return { status, headers: [], text: text.replace(own, '') }
  },
}

/**
 * A wrong password is recorded in the account's activity after the response (sign-in-records.ts), so the response does not
 * wait for it.
 */
const isRecord = (text: string): boolean =>
  /activity|sign_in_attempt|"token_generation"|^(?:begin|commit|start transaction|set local|select set_config)/i.test(
    text,
  )

/** Compares the responses, the statements and the number of hashed passwords. */
async function compare(t: TestContext, request: (email: string) => Promise<Shown>): Promise<void> {
  const { password: hashing } = await api.context.auth.$context
  const hashes = [t.mock.method(hashing, 'hash'), t.mock.method(hashing, 'verify')]
  const work = async (email: string) => {
    const statements = recordStatements(t)
    for (const { mock } of hashes) mock.resetCalls()
    const response = await request(email)
    const sent = statements.texts.filter((text) => !isRecord(text)).sort()
    statements.stop()
    return { response, sent, hashes: hashes.reduce((sum, { mock }) => sum + mock.callCount(), 0) }
  }
  const [known, disabled] = [await api.makeAdmin(), await api.makeAdmin()]
  await database.query('update control.users set is_active = false where id = $1', [disabled.userId])
  // Connections and prepared statements are new for the first one.
  await work(newAddress())
  const without = await work(newAddress())
  for (const { email } of [known, disabled]) assert.deepEqual(await work(email), without)
  assert.ok(without.sent.length > 0)
  t.diagnostic(`${without.sent.length} statements, ${without.hashes} hashes`)
}

describe('an address with an account gets the same response, and causes the same work, as one without', () => {
  for (const [operation, request] of Object.entries(requests)) {
    test(operation, (t) => compare(t, request))
  }
})

describe('a forged link', () => {
  /** The links of one kind: how a person gets one, and what accepts it. */
  interface LinkKind {
    prefix: string
    issue(): Promise<void>
    accept(token: string): Promise<Response>
  }
  let invited = ''
  const kinds: LinkKind[] = [
    {
      prefix: 'pwr_',
      issue: async () => void (await newBrowser().post('/v1/auth/password/forgot', { email: user.email })),
      accept: (token) =>
        newBrowser().post('/v1/auth/password/reset', { token, new_password: 'the password of a thief' }),
    },
    {
      prefix: 'sup_',
      issue: async () =>
        void (await newBrowser().post('/v1/auth/sign-up', { email: newAddress(), name: 'Cleo', password })),
      accept: (token) => newBrowser().post('/v1/auth/sign-up/confirm', { token, password }),
    },
    {
      prefix: 'inv_',
      issue: async () => {
        invited = newAddress()
        await owner.post(`/projects/${project.id}/members`, { email: invited, role: 'viewer' })
      },
      accept: (token) => newBrowser().post('/v1/auth/register', { token, name: 'Thief', password }),
    },
    {
      prefix: 'eml_',
      issue: async () =>
        void (await session.post('/v1/auth/email', { email: newAddress(), password: user.password })),
      accept: (token) => newBrowser().post('/v1/auth/email/confirm', { token }),
    },
    {
      prefix: 'emu_',
      issue: async () => undefined,
      accept: (token) => newBrowser().post('/v1/auth/email/undo', { token }),
    },
  ]
  const forgeries = Number(process.env['POSTERN_TEST_FORGERIES'] ?? 250)

  test('is never accepted: random, altered, of another kind or of another length', async (t) => {
    await database.query('delete from control.daily_counts')
    for (const { issue } of kinds) await issue()
    await sendAllSystemMail(database, deps)
    const valid = inbox.mails.flatMap(({ plain }) => /#(\w{3}_[\w-]{43})\b/.exec(plain)?.[1] ?? [])
    assert.ok(valid.length >= 4)
    const usersBefore = await database.query('select id, email from control.users order by id')
    const makers: ((kind: LinkKind, n: number) => string)[] = [
      ({ prefix }) => prefix + randomBytes(32).toString('base64url'),
      ({ prefix }, n) => altered(ofKind(prefix, n), n),
      ({ prefix }, n) => prefix + ofOtherKind(prefix, n).slice(4),
      ({ prefix }, n) => ofOtherKind(prefix, n),
      ({ prefix }, n) => ofKind(prefix, n).slice(0, 4 + (n % 43)),
      ({ prefix }, n) => `${ofKind(prefix, n)}${'A'.repeat(1 + (n % 9))}`,
    ]
    const pick = <T>(from: readonly T[], n: number): T | undefined => from[n % from.length]
    const ofKind = (prefix: string, n: number): string =>
      pick(
        valid.filter((token) => token.startsWith(prefix)),
        n,
      ) ?? prefix + randomBytes(32).toString('base64url')
    const ofOtherKind = (prefix: string, n: number): string =>
      pick(
        valid.filter((token) => !token.startsWith(prefix)),
        n,
      ) ?? ''
    const altered = (token: string, n: number): string => {
      const at = 4 + (n % (token.length - 5))
      return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
    }
    const statuses: Record<number, number> = {}
    for (let n = 0; n < forgeries; n++) {
      const kind = kinds[n % kinds.length]
      const make = makers[Math.floor(n / kinds.length) % makers.length]
      if (!kind || !make) continue
      const { status } = await kind.accept(make(kind, n))
      statuses[status] = (statuses[status] ?? 0) + 1
    }
    t.diagnostic(`${forgeries} forged links: ${JSON.stringify(statuses)}`)
    assert.deepEqual(statuses, { 404: forgeries })
    assert.deepEqual(await database.query('select id, email from control.users order by id'), usersBefore)
  })
})
