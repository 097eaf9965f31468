import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startApi } from '../../testing/api.ts'
import { customers } from '../../testing/customers.ts'
import { testDatabase } from '../../testing/database.ts'
import { endpointConfiguration } from '../../testing/fixtures.ts'
import { assertProblem } from '../../testing/problem.ts'

const database = await testDatabase()
const api = await startApi(database)
const { admin, make, ownProject, keyOf } = await customers(api, database)
const { owner, project } = await ownProject()
const path = `/projects/${project.id}/endpoints`

async function created() {
  const answer = await owner.post(path, endpointConfiguration)
  assert.equal(answer.status, 201, answer.text)
  return answer
}

describe('endpoints.create by a customer', () => {
  test('tells the secret once, and makes what an administrator sees', async () => {
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

  test('keeps the Idempotency-Key of one project, and of one caller, apart from that of another', async () => {
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
  test('replaces the complete configuration, and refuses a part of it', async () => {
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
  test('gives another secret, of which the last four characters are shown', async () => {
    const { resource, secret } = (await created()).body
    const answer = await owner.post(`${path}/${resource.id}/rotate`)
    assert.equal(answer.status, 200, answer.text)
    assert.notEqual(answer.body.secret, secret)
    assert.equal(answer.body.resource.secret_hint, answer.body.secret.slice(-4))
    assert.equal(answer.headers.get('etag'), '"2"')
  })
})

describe('endpoints.delete by a customer', () => {
  test('is refused while a route points at it, and takes a body or none', async () => {
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
