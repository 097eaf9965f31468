import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ErrorCode } from '../../platform/errors.ts'
import { reason } from '../../testing/expectations/mutations.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, Client } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { dump } from '../../testing/harness/dump.ts'

/**
 * Requests with several faults. The response reports the first fault, in the same order for all operations. Callers
 * choose their addresses through a trusted proxy.
 */
const perAddress = 20
const perUser = 200
const database = await testDatabase()
const api = await startApi(database, {
  POSTERN_TRUSTED_PROXIES: '127.0.0.1',
  POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS: String(perAddress),
  POSTERN_REQUESTS_PER_MINUTE_PER_USER: String(perUser),
})
const unlimited = await startApi(database)

async function makeAdmin() {
  const { email, userId } = await api.makeAdmin()
  return { email, userId, token: await api.tokenOf(email) }
}
const ada = await makeAdmin()
const busy = await makeAdmin()
const former = await makeAdmin()
const limited = await makeAdmin()

const admin = new Client(unlimited.url, ada.token)
const make = fixtures(database, admin)
const project = await make.makeProject()
const otherProject = await make.makeProject()
const { resource: endpoint } = await make.makeEndpoint(project.id)
const { resource: otherEndpoint } = await make.makeEndpoint(otherProject.id)

interface Sent {
  method: string
  projectId: string | number
  endpointId: string | number
  query: string
  /** The caller's address. */
  address: string
  token: string | null
  headers: Record<string, string>
  body: string
}

let addresses = 0
const newAddress = (): string => `10.0.${Math.floor(++addresses / 250)}.${(addresses % 250) + 1}`

/** A request without a fault. */
const good = (): Sent => ({
  method: 'POST',
  projectId: project.id,
  endpointId: endpoint.id,
  query: '?dry_run=true',
  address: newAddress(),
  token: ada.token,
  headers: { 'content-type': 'application/json', 'if-match': '*' },
  body: JSON.stringify({ reason }),
})

const send = ({ method, projectId, endpointId, query, address, token, headers, body }: Sent) =>
  call(`/v1/admin/projects/${projectId}/endpoints/${endpointId}/rotate${query}`, {
    method,
    headers: {
      'x-forwarded-for': address,
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    body,
  })

/** Every response has the security headers for browsers. */
async function call(path: string, init: RequestInit, url = api.url): Promise<Answer> {
  const response = await fetch(new URL(path, url), init)
  const text = await response.text()
  const { headers, status } = response
  assert.match(headers.get('x-request-id') ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}$/)
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.equal(headers.get('x-content-type-options'), 'nosniff')
  assert.equal(headers.get('referrer-policy'), 'no-referrer')
  assert.equal(headers.get('content-security-policy'), "default-src 'none'; frame-ancestors 'none'")
  assert.equal(headers.get('access-control-allow-origin'), null)
  assert.equal(headers.get('server'), null)
  assert.equal(headers.get('x-powered-by'), null)
  return { status, headers, text, body: text === '' ? null : JSON.parse(text) }
}

const show = (address: string, token: string | null = ada.token) =>
  call(`/v1/admin/projects/${project.id}`, {
    headers: { 'x-forwarded-for': address, ...(token === null ? {} : { authorization: `Bearer ${token}` }) },
  })

const floodedAddress = '192.0.2.1'

/**
 * Afterwards the rate limits of the address and of three users are used up. One of the users is demoted, and one has limited
 * rights.
 */
async function exhaust(): Promise<void> {
  await Promise.all(Array.from({ length: perAddress }, () => show(floodedAddress, null)))
  for (let sent = 0; sent < perUser; sent += perAddress) {
    for (const { token } of [busy, former, limited]) {
      const address = newAddress()
      await Promise.all(Array.from({ length: perAddress }, () => show(address, token)))
    }
  }
  assertProblem(await show(newAddress(), former.token), 429, 'rate_limited')
  await database.query(`update control.users set role = 'user' where id = $1`, [former.userId])
  await database.query(`update control.users set rights = 'support' where id = $1`, [limited.userId])
}

interface Fault {
  what: string
  /** The order of checks. The lowest rank is reported first. */
  rank: number
  status: number
  error: ErrorCode
  spoil(sent: Sent): Sent
}

const withHeaders = (sent: Sent, headers: Record<string, string>): Sent => ({
  ...sent,
  headers: { ...sent.headers, ...headers },
})

const usedKey = { 'idempotency-key': 'used-before' }
await admin.post(`/projects/${otherProject.id}/endpoints/${otherEndpoint.id}/rotate`, { reason }, usedKey)

const faults: Fault[] = [
  {
    what: 'an address without requests left',
    rank: 0,
    status: 429,
    error: 'rate_limited',
    spoil: (sent) => ({ ...sent, address: floodedAddress }),
  },
  {
    what: 'no token',
    rank: 1,
    status: 401,
    error: 'unauthenticated',
    spoil: (sent) => ({ ...sent, token: null }),
  },
  {
    what: 'an invalid token',
    rank: 1,
    status: 401,
    error: 'unauthenticated',
    spoil: (sent) => ({ ...sent, token: 'nonsense' }),
  },
  {
    what: 'an API key',
    rank: 2,
    status: 403,
    error: 'api_key_not_allowed',
    spoil: (sent) => ({ ...sent, token: 'pk_live_abc' }),
  },
  {
    what: 'a caller who is not an administrator and has no requests left',
    rank: 2,
    status: 403,
    error: 'admin_required',
    spoil: (sent) => ({ ...sent, token: former.token }),
  },
  {
    what: 'an administrator who lacks the rights and has no requests left',
    rank: 2,
    status: 403,
    error: 'insufficient_rights',
    spoil: (sent) => ({ ...sent, token: limited.token }),
  },
  {
    what: 'a user without requests left',
    rank: 3,
    status: 429,
    error: 'rate_limited',
    spoil: (sent) => ({ ...sent, token: busy.token }),
  },
  {
    what: 'a body that is too large',
    rank: 4,
    status: 413,
    error: 'body_too_large',
    spoil: (sent) => ({ ...sent, body: `"${'x'.repeat(70_000)}"` }),
  },
  {
    what: 'a body of another type',
    rank: 4,
    status: 415,
    error: 'unsupported_media_type',
    spoil: (sent) => withHeaders(sent, { 'content-type': 'text/plain' }),
  },
  {
    what: 'a body that is not JSON',
    rank: 4,
    status: 400,
    error: 'invalid_json',
    spoil: (sent) => ({ ...sent, body: '{"reason": ' }),
  },
  {
    what: 'a non-canonical number',
    rank: 4,
    status: 400,
    error: 'invalid_parameter',
    spoil: (sent) => ({ ...sent, projectId: '1e3' }),
  },
  {
    what: 'an unknown query parameter',
    rank: 4,
    status: 400,
    error: 'invalid_parameter',
    spoil: (sent) => ({ ...sent, query: '?dryrun=true' }),
  },
  {
    what: 'an invalid If-Match',
    rank: 4,
    status: 400,
    error: 'invalid_parameter',
    spoil: (sent) => withHeaders(sent, { 'if-match': 'latest' }),
  },
  {
    what: 'an invalid Idempotency-Key',
    rank: 4,
    status: 400,
    error: 'invalid_parameter',
    spoil: (sent) => withHeaders(sent, { 'idempotency-key': 'two words' }),
  },
  {
    what: 'an unknown field',
    rank: 5,
    status: 422,
    error: 'validation_failed',
    spoil: (sent) => ({ ...sent, body: JSON.stringify({ colour: 'red' }) }),
  },
  {
    what: 'an empty reason',
    rank: 5,
    status: 422,
    error: 'validation_failed',
    spoil: (sent) => ({ ...sent, body: JSON.stringify({ reason: '  ' }) }),
  },
  {
    what: 'a project that does not exist',
    rank: 6,
    status: 404,
    error: 'not_found',
    spoil: (sent) => ({ ...sent, projectId: 4711 }),
  },
  {
    what: "another project's endpoint",
    rank: 6,
    status: 404,
    error: 'not_found',
    spoil: (sent) => ({ ...sent, endpointId: otherEndpoint.id }),
  },
  {
    what: 'an Idempotency-Key of another request',
    rank: 7,
    status: 422,
    error: 'idempotency_key_reused',
    spoil: (sent) => withHeaders(sent, usedKey),
  },
  {
    what: 'a stale version',
    rank: 8,
    status: 412,
    error: 'stale_resource',
    spoil: (sent) => withHeaders(sent, { 'if-match': '"4711"' }),
  },
  {
    what: 'a missing reason',
    rank: 9,
    status: 422,
    error: 'reason_required',
    spoil: (sent) => ({ ...sent, body: '{}' }),
  },
]

/** Runs the operation itself, not a preview. Unlike the operation, a preview requires no reason and no key. */
const performed = (): Sent => ({ ...good(), query: '' })

describe('the order of checks', () => {
  test('each fault is reported, and a request without faults succeeds', async () => {
    await exhaust()
    for (const fault of faults) assertProblem(await send(fault.spoil(performed())), fault.status, fault.error)
    assert.equal((await send(good())).status, 200)
  })

  test('of two faults, the response reports the first', async () => {
    const before = await dump(database)
    let pairs = 0
    for (const first of faults) {
      for (const second of faults.filter(({ rank }) => rank > first.rank)) {
        const { status, body } = await send(first.spoil(second.spoil(performed())))
        const both = `${first.what} and ${second.what}`
        assert.deepEqual([both, status, body.error], [both, first.status, first.error])
        pairs++
      }
    }
    assert.ok(pairs > 150, `${pairs} pairs`)
    const isCounted = (line: string) => line.startsWith('control.denials ')
    assert.deepEqual(
      (await dump(database)).filter((line) => !isCounted(line)),
      before.filter((line) => !isCounted(line)),
    )
  })

  test('of all faults together, the response reports the first, then the next after each correction', async () => {
    const ladder = faults.filter(({ rank }, index) => faults[index - 1]?.rank !== rank)
    for (const [index, { what, status, error }] of ladder.entries()) {
      const sent = ladder.slice(index).reduceRight((spoilt, fault) => fault.spoil(spoilt), performed())
      const answer = await send(sent)
      assert.deepEqual([what, answer.status, answer.body.error], [what, status, error])
    }
    assert.equal(ladder.length, 10)
  })

  test('a stale version is reported before a conflict, and a missing resource before both', async () => {
    const members = `/projects/${project.id}/members`
    const [owner] = (await admin.get(members)).body.data
    const stale = { 'if-match': '"4711"' }
    const path = `${members}/${owner.id}`
    assertProblem(await admin.delete(path, { reason }, stale), 412, 'stale_resource')
    assertProblem(await admin.delete(path, {}, { 'if-match': '"1"' }), 422, 'reason_required')
    assertProblem(await admin.delete(path, { reason }, { 'if-match': '"1"' }), 409, 'last_owner')
    const foreign = `/projects/${otherProject.id}/members/${owner.id}`
    assertProblem(await admin.delete(foreign, {}, stale), 404, 'not_found')
  })
})
