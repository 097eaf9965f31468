import assert from 'node:assert/strict'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { startApi } from '../../testing/harness/api.ts'
import { Client } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { untilReauthenticationIsDue } from '../../testing/harness/late-body.ts'
import { holdingBack } from '../../testing/harness/lock-queue.ts'

/** A request with several faults gets the error that comes first in the order of checks. */
const database = await testDatabase()
const api = await startApi(database)
const { admin, make, ownProject, member, stranger, keyOf } = await customers(api, database)
const { owner, project } = await ownProject()
const path = `/projects/${project.id}/endpoints`

describe('the order of checks', () => {
  test('401, then 403, before the request is validated', async () => {
    const nobody = new Client(api.url, 'garbage', '/v1')
    const viewer = await member(project.id, 'viewer')
    const reader = await keyOf(project.id, ['domains:read'])
    for (const [caller, status, error] of [
      [nobody, 401, 'unauthenticated'],
      [viewer, 403, 'insufficient_role'],
      [reader, 403, 'insufficient_scope'],
    ] as const) {
      const bad = { 'idempotency-key': 'a b', 'if-match': 'x', 'content-type': 'text/plain' }
      assertProblem(await caller.request('POST', `${path}?unknown=1`, { x: 1 }, bad), status, error)
    }
  })

  test('400 and 415 before 422, and 422 before the 404 for a caller without access', async () => {
    const outsider = await stranger()
    for (const caller of [outsider, owner]) {
      assertProblem(
        await caller.request('POST', path, { x: 1 }, { 'content-type': 'text/plain' }),
        415,
        'unsupported_media_type',
      )
      assertProblem(await caller.post(`${path}?unknown=1`, { x: 1 }), 400, 'invalid_parameter')
      assertProblem(await caller.post(path, { x: 1 }), 422, 'validation_failed')
      assertProblem(await caller.post('/projects/1e3/endpoints', { x: 1 }), 400, 'invalid_parameter')
    }
    const config = { name: 'Events', url: 'https://example.com', events: [] }
    assertProblem(await outsider.post(path, config), 404, 'not_found')
  })

  test('404 before a reused Idempotency-Key and before If-Match', async () => {
    const headers = { 'idempotency-key': 'order' }
    const { resource } = await make.makeEndpoint(project.id)
    assert.equal((await owner.post(`${path}/${resource.id}/rotate`, {}, headers)).status, 200)
    assertProblem(await owner.post(`${path}/987654/rotate`, {}, headers), 404, 'not_found')
    const other = await make.makeEndpoint(project.id)
    const used = { ...headers, 'if-match': '"9"' }
    assertProblem(
      await owner.post(`${path}/${other.resource.id}/rotate`, {}, used),
      422,
      'idempotency_key_reused',
    )
    assertProblem(await owner.delete(`${path}/987654`, undefined, { 'if-match': '"9"' }), 404, 'not_found')
  })

  test('If-Match before the rules', async () => {
    const { resource } = await make.makeEndpoint(project.id)
    await make.makeRouteTo(project.id, resource.id)
    const item = `${path}/${resource.id}`
    assertProblem(await owner.delete(item, undefined, { 'if-match': '"9"' }), 412, 'stale_resource')
    assertProblem(await owner.delete(item), 409, 'in_use')
  })

  test('the second of two concurrent requests with one Idempotency-Key does not wait for the first', async () => {
    const headers = { 'idempotency-key': 'both' }
    const config = { name: 'Events', url: 'https://example.com', events: [] }
    const answer = await holdingBack(
      database,
      `select from control.projects where id = ${project.id} for no key update`,
      () => owner.post(path, config, headers),
      async () => assertProblem(await owner.post(path, config, headers), 409, 'request_in_progress'),
    )
    assert.equal(answer.status, 201)
  })
})

describe('an authenticated caller', () => {
  test('is rejected if the membership was removed before the body arrived', async (t) => {
    const leaver = await member(project.id, 'developer')
    const sent = request(`${api.url}/v1${path}`, {
      method: 'POST',
      headers: { ...leaver.headers, 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
    })
    const answer = new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
      sent.on('error', reject)
      sent.on('response', async (response) =>
        resolve({ status: response.statusCode, body: await text(response) }),
      )
    })
    await untilReauthenticationIsDue(t, () => sent.flushHeaders())
    await admin.patch(`/projects/${project.id}/members/${leaver.memberId}`, { role: 'viewer' })
    sent.end(JSON.stringify({ name: 'Events', url: 'https://example.com', events: [] }))
    const { status, body } = await answer
    assert.deepEqual([status, JSON.parse(body).error], [403, 'insufficient_role'])
  })
})

describe('requests per minute', () => {
  const narrow = {
    POSTERN_REQUESTS_PER_MINUTE_PER_USER: '2',
    POSTERN_REQUESTS_PER_MINUTE_PER_API_KEY: '3',
    POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS: '10',
    POSTERN_TRUSTED_PROXIES: '127.0.0.1',
  }
  const times = async (count: number, caller: Client, at: string, address: string) => {
    const statuses = []
    for (let n = 0; n < count; n++) {
      statuses.push((await caller.get(at, { 'x-forwarded-for': address })).status)
    }
    return statuses
  }

  test('are limited per user and per API key by the configured limits', async () => {
    const limited = await startApi(database, narrow)
    const over = ({ headers }: Client) => new Client(limited.url, headers.authorization.slice(7), '/v1')
    assert.deepEqual(await times(3, over(owner), `/projects/${project.id}`, '192.0.2.1'), [200, 200, 429])
    const [one, other] = [
      await keyOf(project.id, ['domains:read']),
      await keyOf(project.id, ['domains:read']),
    ]
    const domains = `/projects/${project.id}/domains`
    assert.deepEqual(await times(4, over(one), domains, '192.0.2.2'), [200, 200, 200, 429])
    assert.deepEqual(await times(1, over(other), domains, '192.0.2.3'), [200])
    // A request rejected for its role or scope is not counted: 403 comes before 429.
    assert.deepEqual(await times(2, over(one), path, '192.0.2.4'), [403, 403])
  })

  test('are limited per client address first', async () => {
    const limited = await startApi(database, narrow)
    const nobody = new Client(limited.url, 'garbage', '/v1')
    const statuses = await times(12, nobody, '/projects', '192.0.2.9')
    assert.deepEqual([...new Set(statuses.slice(0, 10))], [401])
    assert.deepEqual(statuses.slice(10), [429, 429])
  })
})
