import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertStrictPaging, readAllPages } from '../../testing/expectations/pages.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makePolicy, makeProject, makeFiring } = fixtures(database, admin)

const idsOf = async (query: Record<string, string> = {}) =>
  (await readAllPages<{ id: number }>(admin, '/firings', { limit: '2', ...query })).map(({ id }) => id)

describe('firings.list', () => {
  test('returns the figures of a firing', async () => {
    const [project, policy] = [await makeProject(), await makePolicy()]
    const id = await makeFiring(project.id, policy.id)
    const [{ at, created_at, ...firing }] = (await admin.get('/firings')).body.data
    assert.deepEqual(firing, {
      id,
      policy_id: policy.id,
      policy_version: 1,
      project_id: project.id,
      value: 25,
      counted: 100,
      baseline: 400,
      outcome: 'recorded',
      intervention_id: null,
    })
    assert.ok(at < created_at)
  })

  test('returns the newest first, of a policy, of a project, or of both', async () => {
    const [one, other] = [await makeProject(), await makeProject()]
    const policy = await makePolicy()
    const all: { id: number; policy: number; project: number }[] = []
    for (const [policyId, project] of [
      ...[1, policy.id, policy.id].map((id) => [id, one.id] as const),
      ...[1, policy.id, 1].map((id) => [id, other.id] as const),
    ]) {
      all.unshift({ id: await makeFiring(project, policyId), policy: policyId, project })
    }
    const wanted = (accepts: (firing: (typeof all)[number]) => boolean) =>
      all.filter(accepts).map(({ id }) => id)
    assert.deepEqual(
      (await idsOf()).slice(0, all.length),
      wanted(() => true),
    )
    assert.deepEqual(
      await idsOf({ policy_id: String(policy.id) }),
      wanted((firing) => firing.policy === policy.id),
    )
    assert.deepEqual(
      await idsOf({ project_id: String(one.id) }),
      wanted(({ project }) => project === one.id),
    )
    assert.deepEqual(
      await idsOf({ policy_id: String(policy.id), project_id: String(one.id) }),
      wanted((firing) => firing.policy === policy.id && firing.project === one.id),
    )
    assert.deepEqual(await idsOf({ policy_id: '987654' }), [])
  })

  test('rejects invalid cursors, limits and filters', async () => {
    await assertStrictPaging(admin, '/firings', 1)
    for (const query of ['policy_id=', 'policy_id=x', 'project_id=-1', 'policy=1'])
      assertProblem(await admin.get(`/firings?${query}`), 400, 'invalid_parameter')
  })
})
