import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const { admin, make, ownProject, member, keyOf } = await customers(api, database)
const plan = await make.makePlan({ max_domains: 3 })
const { owner, project } = await ownProject({ plan_id: plan.id })
const developer = await member(project.id, 'developer')
const path = `/projects/${project.id}/domains`

describe('domains.create by a customer', () => {
  test('creates the domain as an administrator sees it, and registers its identity', async () => {
    const answer = await developer.post(path, { name: 'Shop.Example.com', mta_provider: 'ses' })
    assert.equal(answer.status, 201, answer.text)
    const { id, identity } = answer.body
    assert.equal(answer.headers.get('location'), `/v1${path}/${id}`)
    assert.equal(answer.body.name, 'shop.example.com')
    assert.deepEqual((await admin.get(`${path}/${id}`)).body, answer.body)
    const jobs = await database.query(
      `select from jobs.job where name = 'identities.reconcile' and data->>'identity_id' = $1`,
      [String(identity.id)],
    )
    assert.equal(jobs.length, 1)
    assertProblem(
      await developer.post(path, { name: 'shop.example.com', mta_provider: 'ses' }),
      409,
      'already_exists',
    )
    assert.equal((await developer.delete(`${path}/${id}`)).status, 204)
  })

  test("is rejected if it would exceed the plan's limit, even with a reason", async () => {
    const made = []
    for (let n = 0; n < 3; n++) {
      const answer = await developer.post(path, { name: `limit${n}.example.com`, mta_provider: 'ses' })
      assert.equal(answer.status, 201, answer.text)
      made.push(answer.body.id)
    }
    const wanted = { name: 'fourth.example.com', mta_provider: 'ses' }
    const refused = await developer.post(path, wanted)
    assertProblem(refused, 422, 'limit_exceeded')
    assert.match(refused.body.message, /max_domains/)
    assert.doesNotMatch(refused.body.message, /reason/)
    assertProblem(await developer.post(path, { ...wanted, reason: 'Please' }), 422, 'validation_failed')
    assert.equal((await developer.get(path)).body.data.length, 3)
    for (const id of made) await developer.delete(`${path}/${id}`)
  })

  test("rejects the operator's MTAs for a project that is not allowed to use them", async () => {
    const answer = await developer.post(path, { name: 'own.example.com', mta_provider: 'service' })
    assertProblem(answer, 422, 'provider_not_allowed')
  })
})

describe('domains.edit by a customer', () => {
  test('registers a replacement identity, resets verification and moves address routes as requested', async () => {
    const domain = await make.makeDomain(project.id, { status: 'verified' })
    const route = await make.makeRoute(project.id, {
      domain_id: domain.id,
      match: 'address',
      address: `info@${domain.name}`,
    })
    const item = `${path}/${domain.id}`
    assertProblem(await owner.patch(item, { name: 'moved.example.com' }), 422, 'address_routes_unresolved')
    const answer = await owner.patch(item, { name: 'moved.example.com', preserve_local_parts: true })
    assert.equal(answer.status, 200, answer.text)
    const { status, verified_at, identity } = answer.body
    assert.deepEqual([status, verified_at], ['pending', null])
    assert.notEqual(identity.id, domain.identity.id)
    assert.equal(answer.headers.get('etag'), '"2"')
    assert.equal(
      (await admin.get(`/projects/${project.id}/routing/${route.id}`)).body.address,
      'info@moved.example.com',
    )
    assertProblem(await owner.delete(item), 409, 'in_use')
    await admin.delete(`/projects/${project.id}/routing/${route.id}`, { reason: 'Not needed' })
    assert.equal((await owner.delete(item)).status, 204)
  })

  test('accepts a name that another project has verified, and does not affect that project', async () => {
    const { project: other } = await ownProject()
    const theirs = await make.makeDomain(other.id, { status: 'verified' })
    const mine = await make.makeDomain(project.id, { status: 'verified' })
    const answer = await owner.patch(`${path}/${mine.id}`, { name: theirs.name })
    assert.deepEqual([answer.status, answer.body.status], [200, 'pending'])
    assert.equal((await admin.get(`/projects/${other.id}/domains/${theirs.id}`)).body.status, 'verified')
    // The response does not reveal the other project; the check reports that the name is claimed.
    const asked = await owner.post(`${path}/${mine.id}/verify`)
    assert.equal(asked.status, 200, asked.text)
    await owner.delete(`${path}/${mine.id}`)
  })
})

describe('domains.rotate and domains.verify by a customer', () => {
  test('add a new key next to the current one, and queue a check', async () => {
    const domain = await make.makeDomain(project.id, { mta_provider: 'service' })
    const item = `${path}/${domain.id}`
    const rotated = await developer.post(`${item}/rotate`)
    assert.equal(rotated.status, 200, rotated.text)
    assert.notEqual(rotated.body.resource.identity.selector, domain.identity.selector)
    assert.equal(rotated.headers.get('etag'), '"2"')
    assert.equal(rotated.headers.get('location'), `/v1${item}`)
    const asked = await developer.post(`${item}/verify`)
    assert.equal(asked.status, 200, asked.text)
    assert.equal(asked.headers.get('etag'), '"2"')
    const jobs = await database.query(
      `select from jobs.job where name = 'domains.check' and data->>'domain_id' = $1`,
      [String(domain.id)],
    )
    assert.equal(jobs.length, 1)
    await developer.delete(item)
  })
})

describe('an API key', () => {
  test('reads with domains:read and writes with domains:write, and neither scope includes the other', async () => {
    const [reader, writer] = [
      await keyOf(project.id, ['domains:read']),
      await keyOf(project.id, ['domains:write']),
    ]
    const made = await writer.post(path, { name: 'key.example.com', mta_provider: 'ses' })
    assert.equal(made.status, 201, made.text)
    assert.equal((await reader.get(`${path}/${made.body.id}`)).text, made.text)
    assert.equal((await reader.get(path)).body.data.length, 1)
    const refused = await writer.get(path)
    assertProblem(refused, 403, 'insufficient_scope')
    assert.match(refused.body.message, /domains:read/)
    assertProblem(await reader.delete(`${path}/${made.body.id}`), 403, 'insufficient_scope')
    assert.equal((await writer.delete(`${path}/${made.body.id}`)).status, 204)
  })
})
