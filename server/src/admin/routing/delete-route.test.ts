import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures, routeConfiguration } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDomain, makeEndpoint, makeRoute, makeRouteTo } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const reason = 'The mailbox was closed'
const { id: projectId } = await makeProject()
const pathOf = (id: number, project = projectId) => `/projects/${project}/routing/${id}`
const effectsOf = async (id: number): Promise<string[]> =>
  (await admin.delete(`${pathOf(id)}?dry_run=true`)).body.effects

describe('routing.delete', () => {
  test('deletes the route, and keeps its audit rows', async () => {
    const route = await makeRoute(projectId)
    const answer = await admin.delete(pathOf(route.id), { reason })
    assert.deepEqual([answer.status, answer.text], [204, ''])
    assertProblem(await admin.get(pathOf(route.id)), 404, 'not_found')
    assertProblem(await admin.delete(pathOf(route.id), { reason }), 404, 'not_found')
    await assertAudited(answer, {
      operation: 'routing.delete',
      project_id: projectId,
      resource: ['route', route.id],
      reason,
      before: { ...routeConfiguration, domain_id: route.domain_id },
    })
  })

  test('requires a reason', async () => {
    const route = await makeRoute(projectId)
    for (const body of [{}, undefined]) {
      const answer = await admin.delete(pathOf(route.id), body)
      assertProblem(answer, 422, 'reason_required')
      await assertNotAudited(answer)
    }
    assert.equal((await admin.get(pathOf(route.id))).status, 200)
  })

  test('allows another route for the same address, and the deletion of its endpoint', async () => {
    const { resource: endpoint } = await makeEndpoint(projectId)
    const route = await makeRouteTo(projectId, endpoint.id)
    const hook = `/projects/${projectId}/endpoints/${endpoint.id}`
    assertProblem(await admin.delete(hook, { reason }), 409, 'in_use')
    assert.equal((await admin.delete(pathOf(route.id), { reason })).status, 204)
    assert.equal((await admin.delete(hook, { reason })).status, 204)
    await makeRoute(projectId, { domain_id: route.domain_id })
  })

  test('takes effect once for two concurrent requests', async () => {
    const { id } = await makeRoute(projectId)
    const answers = await Promise.all([1, 2, 3].map(() => admin.delete(pathOf(id), { reason })))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [204, 404, 404])
  })

  test('shows in its preview which route receives the mail afterwards', async () => {
    const { id: domain_id, name } = await makeDomain(projectId)
    const address = `a@${name}`
    const { id } = await makeRoute(projectId, { domain_id, match: 'address', address })
    assert.deepEqual(await effectsOf(id), [`No other route accepts mail for ${address}: it is rejected.`])
    const all = await makeRoute(projectId, { domain_id, action: 'drop', is_active: false })
    assert.deepEqual(await effectsOf(id), [`No other route accepts mail for ${address}: it is rejected.`])
    const on = { ...routeConfiguration, domain_id, action: 'drop', is_active: true }
    assert.equal((await admin.patch(pathOf(all.id), on)).status, 200)
    assert.deepEqual(await effectsOf(id), [
      `The catch-all (route ${all.id}) receives mail for ${address}: it is accepted and discarded.`,
    ])
    assert.deepEqual(await effectsOf(all.id), [
      `No other route accepts mail for the other addresses of ${name}: it is rejected.`,
    ])
    const asleep = await makeRoute(projectId, { is_active: false })
    assert.deepEqual(await effectsOf(asleep.id), ['The route is inactive, so routing does not change.'])
  })

  test("returns the same 404 for another project's route as for a missing one, and deletes nothing", async () => {
    const route = await makeRoute(projectId)
    const other = await makeProject()
    for (const path of [pathOf(route.id, other.id), pathOf(route.id, 999_999_999), pathOf(999_999_999)]) {
      const answer = await admin.delete(path, { reason })
      assertProblem(answer, 404, 'not_found')
      await assertNotAudited(answer)
    }
    assert.deepEqual((await admin.get(pathOf(route.id))).body, route)
  })
})
