import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { planConfiguration } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { watchRows } from '../../testing/harness/dump.ts'

/** Rate limits, size limits and content types of administrative requests. */
const perAddress = 5
const perUser = 12
const database = await testDatabase()
const limits = {
  POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS: String(perAddress),
  POSTERN_REQUESTS_PER_MINUTE_PER_USER: String(perUser),
}
const api = await startApi(database, { ...limits, POSTERN_TRUSTED_PROXIES: '127.0.0.1' })
const unlimited = await startApi(database)
const admin = await signedIn(unlimited)

const newToken = async () => {
  const { email } = await api.makeAdmin()
  return { email, token: await api.tokenOf(email) }
}

const listPlansFrom = async (address: string, token: string, url = api.url): Promise<Answer> =>
  new Client(url, token).get('/plans', { 'x-forwarded-for': address })

/** The responses to this many sequential requests. */
async function times(count: number, send: () => Promise<Answer>): Promise<number[]> {
  const statuses: number[] = []
  while (statuses.length < count) statuses.push((await send()).status)
  return statuses
}

const all = (status: number, count: number): number[] => Array.from({ length: count }, () => status)

function assertLimited(answer: Answer): void {
  assertProblem(answer, 429, 'rate_limited')
  const seconds = Number(answer.headers.get('retry-after'))
  assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60, `Retry-After: ${seconds}`)
  assert.match(answer.body.message, new RegExp(`Wait ${seconds} seconds`))
}

const { body: plan } = await admin.post('/plans', planConfiguration)

describe('requests per minute', () => {
  test('are limited per address, regardless of the user', async () => {
    const { token } = await newToken()
    assert.deepEqual(await times(perAddress, () => listPlansFrom('192.0.2.1', token)), all(200, perAddress))
    assertLimited(await listPlansFrom('192.0.2.1', token))
    assertLimited(await listPlansFrom('192.0.2.1', 'nonsense'))
    assert.equal((await listPlansFrom('192.0.2.2', token)).status, 200)
  })

  test('include rejected requests', async () => {
    const { token } = await newToken()
    assert.deepEqual(
      await times(perAddress, () => listPlansFrom('192.0.2.3', 'nonsense')),
      all(401, perAddress),
    )
    assertLimited(await listPlansFrom('192.0.2.3', token))
  })

  test('are counted per network for IPv6', async () => {
    const { token } = await newToken()
    const neighbours = ['2001:db8:1:2::1', '2001:DB8:1:2:ffff:ffff:ffff:ffff', '2001:0db8:0001:0002::abcd:1']
    for (let sent = 0; sent < perAddress; sent++) {
      const { status } = await listPlansFrom(neighbours[sent % neighbours.length] ?? '', token)
      assert.equal(status, 200)
    }
    assertLimited(await listPlansFrom('2001:db8:1:2:8000::', token))
    assert.equal((await listPlansFrom('2001:db8:1:3::1', token)).status, 200)
    assert.equal((await listPlansFrom('2001:db8:0:2::1', token)).status, 200)
  })

  test('cannot be spread across addresses with a forged X-Forwarded-For', async () => {
    const direct = await startApi(database, limits)
    const { token } = await newToken()
    let address = 0
    const statuses = await times(perAddress + 1, () =>
      listPlansFrom(`198.51.100.${++address}`, token, direct.url),
    )
    assert.deepEqual(statuses, [...all(200, perAddress), 429])
  })

  test('are limited per user across all addresses and tokens', async () => {
    const { email, token } = await newToken()
    const other = await api.tokenOf(email)
    let sent = 0
    const statuses = await times(perUser, () =>
      listPlansFrom(`203.0.113.${++sent}`, sent % 2 ? token : other),
    )
    assert.deepEqual(statuses, all(200, perUser))
    assertLimited(await listPlansFrom('203.0.113.200', token))
    assertLimited(await listPlansFrom('203.0.113.201', other))
    assert.equal((await listPlansFrom('203.0.113.202', (await newToken()).token)).status, 200)
  })

  test('above the limit have no effect and are not counted as denials', async () => {
    const { token } = await newToken()
    await times(perAddress, () => listPlansFrom('192.0.2.4', token))
    const rows = await watchRows(database)
    const refused = await new Client(api.url, token).post('/plans', planConfiguration, {
      'x-forwarded-for': '192.0.2.4',
    })
    assertLimited(refused)
    await rows.assertUntouched()
  })

  test("do not count towards other planes' limits", async () => {
    const statuses = await times(perAddress * 2, async () => {
      const { status, headers } = await fetch(`${api.url}/healthz`)
      return { status, headers, text: '', body: null }
    })
    assert.deepEqual(statuses, all(200, perAddress * 2))
  })
})

const raw = async (
  method: string,
  path: string,
  headers: Record<string, string>,
  body: string | Blob | ReadableStream,
) => {
  const token = await unlimited.tokenOf(admin.email)
  const response = await fetch(`${unlimited.url}/v1/admin${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...headers },
    body,
    duplex: 'half',
  } as RequestInit)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: text && JSON.parse(text) }
}

const limitBytes = 64 * 1024
const json = { 'content-type': 'application/json' }
const padded = (bytes: number): string => JSON.stringify({ price: 10 }).padEnd(bytes)

describe('a request body', () => {
  test('of 64 KiB is accepted, and one that is a byte larger is rejected', async () => {
    assert.equal((await raw('PATCH', `/plans/${plan.id}`, json, padded(limitBytes))).status, 200)
    const refused = await raw('PATCH', `/plans/${plan.id}`, json, padded(limitBytes + 1))
    assertProblem(refused, 413, 'body_too_large')
  })

  test('without a Content-Length is read only up to the limit', async () => {
    const inPieces = (bytes: number) => new Blob([padded(bytes)]).stream()
    assert.equal((await raw('PATCH', `/plans/${plan.id}`, json, inPieces(limitBytes))).status, 200)
    const refused = await raw('PATCH', `/plans/${plan.id}`, json, inPieces(limitBytes + 1))
    assertProblem(refused, 413, 'body_too_large')
  })

  test('of a type other than JSON is rejected for every method', async () => {
    const rows = await watchRows(database)
    const types = [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/jsonx',
      'application/merge-patch+json',
      'json',
      '*/*',
    ]
    for (const type of types) {
      for (const [method, path] of [
        ['POST', '/plans'],
        ['PATCH', `/plans/${plan.id}`],
        ['PUT', '/projects/1/billing'],
        ['DELETE', '/projects/1/members/1'],
      ] as const) {
        const refused = await raw(method, path, { 'content-type': type }, JSON.stringify({ price: 20 }))
        assertProblem(refused, 415, 'unsupported_media_type')
      }
    }
    const untyped = new Blob([JSON.stringify({ price: 20 })])
    assertProblem(await raw('PATCH', `/plans/${plan.id}`, {}, untyped), 415, 'unsupported_media_type')
    await rows.assertUntouched()
  })

  test('of JSON can specify its character set', async () => {
    const type = { 'content-type': 'Application/JSON; charset=utf-8' }
    assert.equal((await raw('PATCH', `/plans/${plan.id}`, type, '{"price": 20}')).status, 200)
  })
})

test('every response over https has Strict-Transport-Security', async () => {
  const secure = await startApi(database, { POSTERN_PUBLIC_URL: 'https://mail.example.com' })
  for (const path of ['/v1/admin/plans', '/v1/admin/nothing', '/healthz', '/nothing']) {
    const { headers } = await fetch(`${secure.url}${path}`)
    assert.equal(headers.get('strict-transport-security'), 'max-age=31536000', path)
  }
})
