import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { apiKeyScopes } from '../../core/control/api-keys/scopes.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { apiKeyConfiguration } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { Client } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { holdingBack } from '../../testing/harness/lock-queue.ts'
import { eventually } from '../../testing/harness/waiting.ts'

const database = await testDatabase()
const api = await startApi(database)
const { admin, make, ownProject, member, keyOf } = await customers(api, database)
const { project } = await ownProject()
const developer = await member(project.id, 'developer')
const path = `/projects/${project.id}/api-keys`
const wanted = { mode: 'live', ...apiKeyConfiguration, allowed_ips: [], scopes: ['domains:read'] }

describe('API keys managed by a customer', () => {
  test('a developer can create a key, and its scopes limit what its secret can access', async () => {
    const answer = await developer.post(path, wanted)
    assert.equal(answer.status, 201, answer.text)
    const { resource, secret } = answer.body
    assert.equal(answer.headers.get('location'), `/v1${path}/${resource.id}`)
    const program = new Client(api.url, secret, '/v1')
    assert.equal((await program.get(`/projects/${project.id}/domains`)).status, 200)
    assertProblem(await program.get(`/projects/${project.id}/endpoints`), 403, 'insufficient_scope')
    assert.deepEqual((await admin.get(`${path}/${resource.id}`)).body.prefix, resource.prefix)
  })

  test('an edit, a rotation and a deletion apply to the next request', async () => {
    const { resource, secret } = (await developer.post(path, wanted)).body
    const item = `${path}/${resource.id}`
    const domains = `/projects/${project.id}/domains`
    const before = new Client(api.url, secret, '/v1')
    const { mode: _mode, ...config } = wanted
    await developer.patch(item, { ...config, scopes: ['routing:read'] })
    assertProblem(await before.get(domains), 403, 'insufficient_scope')
    await developer.patch(item, { ...config, is_active: false })
    assertProblem(await before.get(domains), 401, 'unauthenticated')
    await developer.patch(item, config)
    const rotated = await developer.post(`${item}/rotate`)
    assert.equal(rotated.status, 200, rotated.text)
    assertProblem(await before.get(domains), 401, 'unauthenticated')
    const after = new Client(api.url, rotated.body.secret, '/v1')
    assert.equal((await after.get(domains)).status, 200)
    assert.equal((await developer.delete(item)).status, 204)
    assertProblem(await after.get(domains), 401, 'unauthenticated')
  })

  test('no API key can manage keys, members or the project', async () => {
    const key = await keyOf(project.id, [...apiKeyScopes])
    for (const [method, at] of [
      ['GET', path],
      ['POST', path],
      ['GET', `/projects/${project.id}/members`],
      ['GET', `/projects/${project.id}`],
      ['DELETE', `/projects/${project.id}`],
      ['GET', '/projects'],
    ] as const) {
      assertProblem(await key.request(method, at), 403, 'insufficient_scope')
    }
  })

  test('a key that was revoked while the request waited for the lock is rejected', async () => {
    const key = await keyOf(project.id, ['domains:write'])
    const create = () =>
      key.post(`/projects/${project.id}/domains`, { name: 'late.example.com', mta_provider: 'ses' })
    const lock = `select from control.projects where id = ${project.id} for no key update;`
    const rotated = `update control.api_keys set prefix = 'pk_live_xxxx' where id = ${key.id}`
    assertProblem(await holdingBack(database, `${lock} ${rotated}`, create), 401, 'unauthenticated')
    const second = await keyOf(project.id, ['domains:write'])
    const narrowed = `update control.api_keys set scopes = '{domains:read}' where id = ${second.id}`
    const answer = await holdingBack(database, `${lock} ${narrowed}`, () =>
      second.post(`/projects/${project.id}/domains`, { name: 'late.example.com', mta_provider: 'ses' }),
    )
    assertProblem(answer, 403, 'insufficient_scope')
    assert.deepEqual((await developer.get(`/projects/${project.id}/domains`)).body.data, [])
  })

  test('the last use of a key is recorded asynchronously, at most once per minute', async () => {
    const { resource, secret } = await make.makeApiKey(project.id, { ...wanted, allowed_ips: [] } as never)
    const program = new Client(api.url, secret, '/v1')
    const usedAt = async () => (await developer.get(`${path}/${resource.id}`)).body.last_used_at
    assert.equal(await usedAt(), null)
    await program.get(`/projects/${project.id}/domains`)
    const noted = await eventually('the use of the key is noted', usedAt)
    await Promise.all(Array.from({ length: 20 }, () => program.get(`/projects/${project.id}/domains`)))
    assert.equal(await usedAt(), noted)
  })
})
