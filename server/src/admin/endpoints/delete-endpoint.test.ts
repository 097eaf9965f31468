import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertKeptNowhere } from '../../testing/expectations/endpoint-secrets.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { endpointConfiguration, fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { holdingBack } from '../../testing/harness/lock-queue.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeEndpoint, makeRouteTo } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const reason = 'Replaced by the new receiver'
const { id: projectId } = await makeProject()
const pathOf = (id: number, project = projectId) => `/projects/${project}/endpoints/${id}`

describe('endpoints.delete', () => {
  test('deletes the endpoint, its secret and its statistics, and keeps its audit rows', async () => {
    const { resource, secret } = await makeEndpoint(projectId)
    await database.query('insert into control.endpoint_stats (endpoint_id, project_id) values ($1, $2)', [
      resource.id,
      projectId,
    ])
    const answer = await admin.delete(pathOf(resource.id), { reason })
    assert.deepEqual([answer.status, answer.text], [204, ''])
    assertProblem(await admin.get(pathOf(resource.id)), 404, 'not_found')
    assertProblem(await admin.delete(pathOf(resource.id), { reason }), 404, 'not_found')
    const stats = await database.query('select from control.endpoint_stats where endpoint_id = $1', [
      resource.id,
    ])
    assert.equal(stats.length, 0)
    await assertAudited(answer, {
      operation: 'endpoints.delete',
      project_id: projectId,
      resource: ['endpoint', resource.id],
      reason,
      before: { ...endpointConfiguration, secret_hint: resource.secret_hint },
    })
    await assertKeptNowhere(database, api, secret)
  })

  test('requires a reason', async () => {
    const { resource } = await makeEndpoint(projectId)
    for (const body of [{}, undefined]) {
      const answer = await admin.delete(pathOf(resource.id), body)
      assertProblem(answer, 422, 'reason_required')
      await assertNotAudited(answer)
    }
    assert.equal((await admin.get(pathOf(resource.id))).status, 200)
  })

  test('is rejected while a route refers to it, and the error names the routes', async () => {
    const { resource } = await makeEndpoint(projectId)
    const routes = [
      (await makeRouteTo(projectId, resource.id)).id,
      (await makeRouteTo(projectId, resource.id)).id,
    ]
    const answer = await admin.delete(pathOf(resource.id), { reason })
    assertProblem(answer, 409, 'in_use')
    for (const id of routes) assert.match(answer.body.message, new RegExp(`\\b${id}\\b`))
    await assertNotAudited(answer)
    assert.equal((await admin.get(pathOf(resource.id))).status, 200)

    await database.query('update control.routes set is_active = false where id = $1', [routes[0]])
    await database.query('delete from control.routes where id = $1', [routes[1]])
    assertProblem(await admin.delete(pathOf(resource.id), { reason }), 409, 'in_use')
    await database.query('delete from control.routes where id = $1', [routes[0]])
    assert.equal((await admin.delete(pathOf(resource.id), { reason })).status, 204)
  })

  test('is not blocked by routes to other endpoints', async () => {
    const [{ resource: used }, { resource: unused }] = [
      await makeEndpoint(projectId),
      await makeEndpoint(projectId),
    ]
    await makeRouteTo(projectId, used.id)
    assert.equal((await admin.delete(pathOf(unused.id), { reason })).status, 204)
  })

  test('is also rejected if a route is created at the same time', async () => {
    const { resource } = await makeEndpoint(projectId)
    const answer = await holdingBack(
      database,
      `with domain as (
         insert into control.domains (project_id, name, mta_provider, ownership_token)
         values (${projectId}, 'meanwhile.example.org', 'ses', 'token') returning id
       )
       insert into control.routes (project_id, domain_id, match, action, endpoint_id)
       select ${projectId}, id, 'catch_all', 'endpoint', ${resource.id} from domain`,
      () => admin.delete(pathOf(resource.id), { reason }),
    )
    assertProblem(answer, 409, 'in_use')
  })

  test('shows in its preview what the endpoint receives: its events, and no inbound mail', async () => {
    const previewOf = async (changes: object) => {
      const { resource } = await makeEndpoint(projectId, changes)
      return (await admin.delete(`${pathOf(resource.id)}?dry_run=true`)).body
    }
    const inUse = await previewOf({})
    assert.deepEqual(inUse.effects, [
      'Its secret is destroyed. Nothing more is delivered to it, including pending deliveries.',
      'No route sends inbound mail to it, so routing does not change.',
    ])
    assert.deepEqual(inUse.warnings, [
      'The endpoint is in use: events that only this endpoint receives will no longer be delivered.',
    ])
    for (const unused of [{ is_active: false }, { events: [] }]) {
      assert.deepEqual((await previewOf(unused)).warnings, [])
    }
  })

  test('takes effect once for two concurrent requests', async () => {
    const { resource } = await makeEndpoint(projectId)
    const answers = await Promise.all([1, 2, 3].map(() => admin.delete(pathOf(resource.id), { reason })))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [204, 404, 404])
  })

  test("returns the same 404 for another project's endpoint as for a missing one, and deletes nothing", async () => {
    const { resource } = await makeEndpoint(projectId)
    const other = await makeProject()
    for (const path of [
      pathOf(resource.id, other.id),
      pathOf(resource.id, 999_999_999),
      pathOf(999_999_999),
    ]) {
      const answer = await admin.delete(path, { reason })
      assertProblem(answer, 404, 'not_found')
      await assertNotAudited(answer)
    }
    assert.deepEqual((await admin.get(pathOf(resource.id))).body, resource)
  })
})
