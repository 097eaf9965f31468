import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { endpointConfiguration } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const { admin, make, ownProject, member, keyOf } = await customers(api, database)
const { makeEvent, makeAttempt } = mailRows(database)
const { owner, project } = await ownProject()
const path = `/projects/${project.id}/endpoints`

async function created() {
  const answer = await owner.post(path, endpointConfiguration)
  assert.equal(answer.status, 201, answer.text)
  return answer
}

describe('endpoints.create by a customer', () => {
  test('returns the secret once, and creates the endpoint as an administrator sees it', async () => {
    const headers = { 'idempotency-key': 'hook' }
    const answer = await owner.post(path, endpointConfiguration, headers)
    const { resource, secret } = answer.body
    assert.match(secret, /^whsec_/)
    assert.equal(answer.headers.get('location'), `/v1${path}/${resource.id}`)
    assert.deepEqual((await admin.get(`${path}/${resource.id}`)).body, resource)
    const again = await owner.post(path, endpointConfiguration, headers)
    assertProblem(again, 409, 'secret_already_revealed')
    assert.equal(again.headers.get('location'), `/v1${path}/${resource.id}`)
    assert.equal((await owner.get(path)).body.data.length, 1)
  })

  test('scopes Idempotency-Keys to the project and the caller', async () => {
    const second = await make.makeProject({ user_id: owner.user.id })
    const key = await keyOf(project.id, ['endpoints:write'])
    const headers = { 'idempotency-key': 'the-same' }
    assert.equal((await owner.post(path, endpointConfiguration, headers)).status, 201)
    const elsewhere = `/projects/${second.id}/endpoints`
    assert.equal((await owner.post(elsewhere, endpointConfiguration, headers)).status, 201)
    assert.equal((await key.post(path, endpointConfiguration, headers)).status, 201)
    for (const again of [
      owner.post(path, endpointConfiguration, headers),
      key.post(path, endpointConfiguration, headers),
    ]) {
      assertProblem(await again, 409, 'secret_already_revealed')
    }
    const rows = await database.query<{ actor: string; project_id: string }>(
      `select actor, project_id from control.idempotency where key = 'the-same' order by actor, project_id`,
    )
    assert.deepEqual(rows, [
      { actor: `key:${key.id}`, project_id: String(project.id) },
      { actor: `user:${owner.user.id}`, project_id: String(project.id) },
      { actor: `user:${owner.user.id}`, project_id: String(second.id) },
    ])
  })
})

describe('endpoints.edit by a customer', () => {
  test('replaces the complete configuration and rejects a partial one', async () => {
    const { resource } = (await created()).body
    const item = `${path}/${resource.id}`
    const wanted = { ...endpointConfiguration, name: 'Renamed', is_active: false }
    const answer = await owner.patch(item, wanted, { 'if-match': '"1"' })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual({ ...answer.body, ...wanted }, answer.body)
    assertProblem(await owner.patch(item, { name: 'Only' }), 422, 'incomplete_configuration')
    assertProblem(await owner.patch(item, wanted, { 'if-match': '"1"' }), 412, 'stale_resource')
    assertProblem(await owner.patch(item, { ...wanted, url: 'http://example.com' }), 422, 'validation_failed')
  })
})

describe('endpoints.rotate by a customer', () => {
  test('returns a new secret, whose last four characters are shown', async () => {
    const { resource, secret } = (await created()).body
    const answer = await owner.post(`${path}/${resource.id}/rotate`)
    assert.equal(answer.status, 200, answer.text)
    assert.notEqual(answer.body.secret, secret)
    assert.equal(answer.body.resource.secret_hint, answer.body.secret.slice(-5, -1))
    assert.equal(answer.headers.get('etag'), '"2"')
  })
})

describe('endpoints.delete by a customer', () => {
  test('is rejected while a route refers to the endpoint, and accepts a body or none', async () => {
    const { resource } = (await created()).body
    const item = `${path}/${resource.id}`
    const route = await make.makeRouteTo(project.id, resource.id)
    assertProblem(await owner.delete(item), 409, 'in_use')
    assert.equal((await owner.delete(`/projects/${project.id}/routing/${route.id}`, {})).status, 204)
    assertProblem(await owner.delete(item, { reason: 'x' }), 422, 'validation_failed')
    const answer = await owner.delete(item)
    assert.deepEqual([answer.status, answer.text], [204, ''])
    assertProblem(await owner.get(item), 404, 'not_found')
  })
})

describe("an endpoint's deliveries, for a customer", () => {
  const range = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' }

  test('can be tested and replayed with write access, and listed with read access', async () => {
    const { resource } = (await created()).body
    const item = `${path}/${resource.id}`
    const writer = await keyOf(project.id, ['endpoints:write'])
    const reader = await keyOf(project.id, ['endpoints:read'])
    const viewer = await member(project.id, 'viewer')
    const event_id = await makeEvent(project.id)
    for (const caller of [owner, writer]) {
      const test = await caller.post(`${item}/test`)
      assert.deepEqual(
        [test.status, test.body],
        [202, { endpoint_id: resource.id, event_type: 'endpoint.test' }],
      )
      const replay = await caller.post(`${item}/replay`, { event_id })
      assert.equal(replay.status, 202, replay.text)
      assert.equal(replay.body.event_id, event_id)
    }
    const attempt = await makeAttempt(project.id, resource.id, event_id)
    for (const caller of [owner, reader, viewer]) {
      const { body } = await caller.get(`${item}/attempts`)
      assert.deepEqual([body.data.length, body.data[0].id, body.next_cursor], [1, attempt, null])
    }
    assertProblem(await reader.post(`${item}/test`), 403, 'insufficient_scope')
    assertProblem(await viewer.post(`${item}/replay`, range), 403, 'insufficient_role')
    assertProblem(await writer.get(`${item}/attempts`), 403, 'insufficient_scope')
    const told = await database.query<{ topic: string }>(
      `select topic from control.outbox where payload @> $1 order by id`,
      [JSON.stringify({ endpoint_id: resource.id })],
    )
    assert.deepEqual(
      told.map(({ topic }) => topic),
      ['endpoint.test', 'endpoint.replay', 'endpoint.test', 'endpoint.replay'],
    )
  })

  test('are replayed for one time range at a time, regardless of who requests the replay', async () => {
    const { resource } = (await created()).body
    const item = `${path}/${resource.id}`
    const first = await owner.post(`${item}/replay`, range, { 'idempotency-key': 'night' })
    assert.equal(first.status, 202, first.text)
    const again = await owner.post(`${item}/replay`, range, { 'idempotency-key': 'night' })
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [202, 'true'])
    for (const caller of [owner, admin]) {
      assertProblem(await caller.post(`${item}/replay`, range), 409, 'request_in_progress')
    }
  })

  test("are not replayed from another project's events, or while the endpoint is inactive", async () => {
    const { resource } = (await created()).body
    const item = `${path}/${resource.id}`
    const { project: other } = await ownProject()
    const event_id = await makeEvent(other.id)
    assertProblem(await owner.post(`${item}/replay`, { event_id }), 404, 'not_found')
    await owner.patch(item, { ...endpointConfiguration, is_active: false })
    assertProblem(await owner.post(`${item}/test`), 422, 'validation_failed')
    assertProblem(await owner.post(`${item}/replay`, range), 422, 'validation_failed')
  })

  test('are attempted immediately when the endpoint is activated, and dropped when it is deleted', async () => {
    const { resource } = (await created()).body
    const item = `${path}/${resource.id}`
    await owner.patch(item, { ...endpointConfiguration, is_active: false })
    await owner.patch(item, { ...endpointConfiguration, is_active: true, name: 'On' })
    await owner.patch(item, { ...endpointConfiguration, is_active: true, name: 'Still on' })
    await owner.delete(item)
    const told = await database.query<{ topic: string }>(
      `select topic from control.outbox where payload @> $1 order by id`,
      [JSON.stringify({ endpoint_id: resource.id })],
    )
    assert.deepEqual(
      told.map(({ topic }) => topic),
      ['endpoint.enabled', 'endpoint.deleted'],
    )
  })
})
