import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventTypes } from '../../core/shared/events.ts'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertKeptNowhere, livingSecret } from '../../testing/expectations/endpoint-secrets.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { endpointConfiguration, fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const { id: projectId } = await makeProject()
const create = (change: object = {}) =>
  admin.post(`/projects/${projectId}/endpoints`, { ...endpointConfiguration, ...change })
const countEndpoints = async (): Promise<number> =>
  (await database.query<{ n: number }>('select count(*)::int as n from control.endpoints'))[0]?.n ?? 0

describe('endpoints.create', () => {
  test('creates an endpoint and returns its secret once', async () => {
    const answer = await create()
    assert.equal(answer.status, 201, answer.text)
    assert.deepEqual(Object.keys(answer.body), ['resource', 'secret'])
    const { resource, secret } = answer.body
    const { id, created_at, updated_at } = resource
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.deepEqual(resource, {
      id,
      project_id: projectId,
      ...endpointConfiguration,
      disabled_reason: null,
      secret_hint: secret.slice(-5, -1),
      secret_rotated_at: null,
      last_success_at: null,
      consecutive_failures: 0,
      created_at,
      updated_at,
    })
    assert.equal(answer.headers.get('location'), `/v1/admin/projects/${projectId}/endpoints/${id}`)
    assert.equal(answer.headers.get('etag'), '"1"')
    assert.equal(await livingSecret(database, api, resource), secret)
    await assertAudited(answer, {
      operation: 'endpoints.create',
      project_id: projectId,
      resource: ['endpoint', id],
      after: { ...endpointConfiguration, secret_hint: secret.slice(-5, -1) },
    })
    await assertKeptNowhere(database, api, secret)
  })

  test('generates a different secret for each endpoint, even with the same configuration', async () => {
    const secrets = await Promise.all(Array.from({ length: 8 }, async () => (await create()).body.secret))
    assert.equal(new Set(secrets).size, 8)
  })

  test('is active by default, and records the reason', async () => {
    const silent = await create({ is_active: undefined })
    assert.equal(silent.body.resource.is_active, true)
    const asleep = await create({ is_active: false, reason: 'Switched on next week' })
    assert.equal(asleep.body.resource.is_active, false)
    await assertAudited(asleep, {
      operation: 'endpoints.create',
      project_id: projectId,
      resource: ['endpoint', asleep.body.resource.id],
      reason: 'Switched on next week',
      after: { ...endpointConfiguration, is_active: false, secret_hint: asleep.body.resource.secret_hint },
    })
  })

  test('stores name, URL and events in their canonical form', async () => {
    const { body } = await create({
      name: '  Bills ',
      url: 'HTTPS://Hooks.EXAMPLE.com:443/a/../b?x=1',
      events: ['project.locked', 'message.sent'],
    })
    const { name, url, events } = body.resource
    assert.deepEqual(
      { name, url, events },
      {
        name: 'Bills',
        url: 'https://hooks.example.com/b?x=1',
        events: ['message.sent', 'project.locked'],
      },
    )
  })

  test('accepts no events or every event, and rejects unknown events', async () => {
    assert.deepEqual((await create({ events: [] })).body.resource.events, [])
    assert.deepEqual((await create({ events: eventTypes })).body.resource.events, eventTypes)
    for (const events of [
      ['message.lost'],
      ['message.*'],
      ['message.sent', 'message.sent'],
      [''],
      [7],
      'message.sent',
      null,
    ]) {
      const answer = await create({ events })
      assertProblem(answer, 422, 'validation_failed')
      assert.match(answer.body.message, /"events/)
      await assertNotAudited(answer)
    }
  })

  test('accepts a public https URL', async () => {
    for (const url of [
      'https://example.com',
      'https://example.com:8443/x',
      'https://93.184.215.14/',
      'https://[2606:4700::1]/',
    ]) {
      assert.equal((await create({ url })).status, 201, url)
    }
  })

  test('rejects any other URL', async () => {
    const before = await countEndpoints()
    const urls = [
      '',
      'example.com',
      'http://example.com/',
      'ftp://example.com/',
      'https://',
      'https:///path',
      'https://user:password@example.com/',
      'https://example.com/#part',
      'https://example.com/a b',
      'https:\\\\example.com',
      'https://localhost/',
      'https://printer/',
      'https://db.internal/',
      'https://nas.local/',
      'https://127.0.0.1/',
      'https://2130706433/',
      'https://0x7f.1/',
      'https://10.0.0.1/',
      'https://169.254.169.254/latest/meta-data',
      'https://192.168.1.1/',
      'https://[::1]/',
      'https://[::ffff:127.0.0.1]/',
      'https://[fd00::1]/',
      `https://example.com/${'x'.repeat(2048)}`,
      7,
      null,
    ]
    for (const url of urls) {
      const answer = await create({ url })
      assertProblem(answer, 422, 'validation_failed')
      assert.match(answer.body.message, /"url"/)
      await assertNotAudited(answer)
    }
    assert.equal(await countEndpoints(), before)
  })

  test('rejects missing and unknown fields', async () => {
    for (const field of ['name', 'url', 'events']) {
      assertProblem(await create({ [field]: undefined }), 422, 'validation_failed')
    }
    for (const change of [
      { secret: 'whsec_mine' },
      { secret_hint: 'abcd' },
      { name: ' ' },
      { is_active: null },
    ]) {
      assertProblem(await create(change), 422, 'validation_failed')
    }
  })

  test('returns 404 for a missing project', async () => {
    const answer = await admin.post('/projects/999999999/endpoints', endpointConfiguration)
    assertProblem(answer, 404, 'not_found')
  })
})
