import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { purgeFailures } from '../core/control/access/password-backoff.ts'
import { startApi } from '../testing/harness/api.ts'
import { CookieJar } from '../testing/harness/cookie-jar.ts'
import { testDatabase } from '../testing/harness/database.ts'

/** Every browser has its own address: the limit per address is tested in sign-in.test.ts. */
const database = await testDatabase()
const api = await startApi(database, { POSTERN_TRUSTED_PROXIES: '127.0.0.1' })

let addresses = 0
const newBrowser = () =>
  new CookieJar(api.url, {
    'x-forwarded-for': `198.51.${Math.floor(++addresses / 250)}.${(addresses % 250) + 1}`,
  })

const signIn = (email: string, password: string, browser = newBrowser()) =>
  browser.post('/v1/auth/sign-in', { email, password })

async function guess(email: string, times: number): Promise<number[]> {
  const statuses = []
  for (let n = 0; n < times; n++) statuses.push((await signIn(email, `guess number ${n}`)).status)
  return statuses
}

/** Moves the time of a failure into the past. */
const pass = (seconds: number) =>
  database.query('update control.sign_in_failures set failed_at = failed_at - make_interval(secs => $1)', [
    seconds,
  ])

const tenWrong = Array.from({ length: 10 }, () => 401)

/** Status, relevant headers and body: everything that a caller sees. */
async function seen(response: Response) {
  const headers = ['retry-after', 'content-type', 'set-cookie', 'www-authenticate'].map((name) =>
    response.headers.get(name),
  )
  return [response.status, ...headers, await response.text()]
}

test('an address that PostgreSQL cannot store is rejected as invalid', async () => {
  for (const email of ['a\0b@example.com', '\0\0\0', '\uD800@example.com']) {
    assert.equal((await signIn(email, 'whatever it is')).status, 422, JSON.stringify(email))
  }
  await database.query('delete from control.sign_in_failures')
})

describe('wrong passwords for an account, each from a different IP address', () => {
  test('cause increasing delays after the tenth, and the right password is rejected during a delay', async () => {
    const { email, password } = await api.makeAdmin()
    assert.deepEqual(await guess(email, 10), tenWrong)
    // Long enough not to expire during the test.
    await database.query('update control.sign_in_failures set failures = 16')
    const refused = await signIn(email, password)
    assert.equal(refused.status, 429)
    const wait = Number(refused.headers.get('retry-after'))
    assert.ok(wait > 0 && wait <= 64, String(wait))
    await pass(64)
    assert.equal((await signIn(email, 'wrong again')).status, 401)
    const [row] = await database.query('select failures from control.sign_in_failures')
    assert.deepEqual(row, { failures: 17 })
    assert.equal((await signIn(email, password)).status, 429)
    await pass(128)
    assert.equal((await signIn(email, password)).status, 200, 'the right one, after the wait')
    assert.deepEqual(await database.query('select from control.sign_in_failures'), [])
    assert.deepEqual(await guess(email, 10), tenWrong, 'which resets the count')
  })

  test('cause a delay of at most 15 minutes', async () => {
    const rows = await database.query<{ n: number; seconds: number }>(
      `select n, extract(epoch from control.sign_in_delay(n))::int as seconds
         from unnest(array[0, 9, 10, 11, 15, 20, 1000000]) as n`,
    )
    assert.deepEqual(
      rows.map(({ seconds }) => seconds),
      [0, 0, 1, 2, 32, 900, 900],
    )
  })

  test('are counted even if they are concurrent: of forty attempts after a delay, one is checked', async () => {
    const { email } = await api.makeAdmin()
    await guess(email, 1)
    await database.query('update control.sign_in_failures set failures = 20')
    await pass(901)
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) => signIn(email, `parallel guess ${n}`)),
    )
    const tried = answers.filter(({ status }) => status === 401).length
    const refused = answers.filter(({ status }) => status === 429).length
    assert.deepEqual([tried, refused], [1, 39])
  })

  test('get identical responses for an account and for an address without one', async () => {
    const { email } = await api.makeAdmin('account@example.com')
    await database.query('delete from control.sign_in_failures')
    const both = [email, 'missing@example.com']
    for (let n = 0; n < 10; n++) {
      const [known, unknown] = await Promise.all(
        both.map(async (address) => seen(await signIn(address, `guess ${n}`))),
      )
      assert.deepEqual(known, unknown)
    }
    await database.query(
      'update control.sign_in_failures set failures = 30, failed_at = (select max(failed_at) from control.sign_in_failures)',
    )
    const [known, unknown] = await Promise.all(
      both.map(async (address) => seen(await signIn(address, 'another'))),
    )
    assert.equal(known?.[0], 429)
    const plain = (answer: unknown[] | undefined) =>
      answer?.map((part) => String(part).replace(/^(89\d|900)$/, '<wait>'))
    assert.deepEqual(plain(known), plain(unknown))
  })

  test('do not delay a browser that has signed in before: it is counted separately', async () => {
    const { email, password } = await api.makeAdmin()
    const known = newBrowser()
    assert.equal((await signIn(email, password, known)).status, 200)
    await guess(email, 10)
    await database.query('update control.sign_in_failures set failures = 1000')
    assert.equal((await signIn(email, password)).status, 429, 'from elsewhere')
    assert.equal((await signIn(email, password, known)).status, 200)
    assert.equal((await signIn(email.toUpperCase(), password, known)).status, 200)
    assert.equal((await signIn(email, password)).status, 429, 'still, from elsewhere')

    const other = await api.makeAdmin()
    await guess(other.email, 10)
    await database.query('update control.sign_in_failures set failures = 1000')
    assert.equal((await signIn(other.email, other.password, known)).status, 429, 'for another account')
    await database.query('delete from control.sign_in_failures')
    const own = []
    for (let n = 0; n < 10; n++) {
      const address = { 'x-forwarded-for': `192.0.2.${n + 1}` }
      own.push((await known.post('/v1/auth/sign-in', { email, password: `guess ${n}` }, address)).status)
    }
    assert.deepEqual(own, tenWrong)
    const [row] = await database.query(
      'select count(*)::int as rows, max(failures) as failures from control.sign_in_failures',
    )
    assert.deepEqual(row, { rows: 1, failures: 10 })
    assert.equal(
      (await signIn(email, password)).status,
      200,
      'who is not delayed by the count of that browser',
    )
  })

  test("are not counted if the IP address's rate limit rejected them", async () => {
    await database.query('delete from control.sign_in_failures')
    const browser = newBrowser()
    const { email } = await api.makeAdmin()
    for (let n = 0; n < 10; n++) await signIn('x@example.com', 'wrong', browser)
    assert.equal((await signIn(email, 'wrong', browser)).status, 429)
    const [row] = await database.query(
      `select coalesce(max(failures), 0) as failures from control.sign_in_failures where user_id is not null`,
    )
    assert.deepEqual(row, { failures: 0 })
  })

  test('are stored as digests for one day, with a limit for unknown addresses', async () => {
    await database.query('delete from control.sign_in_failures')
    await signIn('secret.person@example.com', 'wrong')
    const rows = await database.query<{ row: string }>(
      'select t::text as row from control.sign_in_failures as t',
    )
    assert.equal(rows.length, 1)
    assert.ok(!rows[0]?.row.includes('secret'))
    const { admin } = api.context.db
    await admin.transaction((tx) => purgeFailures(tx))
    assert.equal((await database.query('select from control.sign_in_failures')).length, 1)
    await pass(25 * 3600)
    await admin.transaction((tx) => purgeFailures(tx))
    assert.equal((await database.query('select from control.sign_in_failures')).length, 0)
    await database.query(
      `insert into control.sign_in_failures (digest, user_id, failures, failed_at)
       select sha256(n::text::bytea), case when n > 5 then (select min(id) from control.users) end, 1,
              now() - make_interval(secs => n) from generate_series(1, 8) as n`,
    )
    assert.equal(await admin.transaction((tx) => purgeFailures(tx, 2)), 3)
    const left = await database.query<{ known: boolean }>(
      'select user_id is not null as known from control.sign_in_failures order by failed_at desc',
    )
    assert.deepEqual(
      left.map(({ known }) => known),
      [false, false, true, true, true],
    )
  })
})
