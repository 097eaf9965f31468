import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { expectedAdminOperations } from '../../testing/expectations/admin-operations.ts'
import { assertEachRowOnce, assertStrictPaging, readAllPages } from '../../testing/expectations/pages.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const other = await signedIn(api)
const { makePlan, makeProject, makeMember, makeEndpoint } = fixtures(database, admin)

interface Row {
  id: number
  at: string
  request_id: string
  operation: string
}

const find = (query: Record<string, string>) => readAllPages<Row>(admin, '/audit', query)
const requestsFound = async (query: Record<string, string>) =>
  (await find(query)).map(({ request_id }) => request_id)
const requestOf = ({ headers }: Answer): string => headers.get('x-request-id') ?? assert.fail()

/** Adds rows without valid hashes. The list does not check hashes. */
async function addMany(projectId: number, count: number): Promise<number[]> {
  const rows = await add(projectId, `select postern.now() as at from generate_series(1, ${count})`)
  return rows.sort((a, b) => b - a)
}

async function add(projectId: number, times: string): Promise<number[]> {
  const rows = await database.query<{ id: string }>(
    `insert into control.audit (chain, seq, at, actor_kind, actor_id, actor_digest, request_id, operation, project_id,
                                resource_type, resource_id, xid, prev_hash, hash)
     select $1, (select coalesce(max(seq), 0) from control.audit where chain = $1) + row_number() over (), at, 'shell', 0,
            hash, 'bulk', 'bulk.add', $1, 'bulk', '1', pg_current_xact_id(), hash, hash
       from (${times}) as times, decode(repeat('00', 32), 'hex') as hash
     returning id`,
    [projectId],
  )
  return rows.map(({ id }) => Number(id))
}

describe('audit.list', () => {
  test('returns entries newest first, each as audit.show returns it', async () => {
    const project = await makeProject()
    await makeMember(project.id)
    const rows = await find({ project_id: String(project.id) })
    assert.deepEqual(
      rows.map(({ operation }) => operation),
      ['members.create', 'projects.create'],
    )
    for (const row of rows) assert.deepEqual((await admin.get(`/audit/${row.id}`)).body, row)
  })

  test('filters by project, and by 0 for entries without a project', async () => {
    const [project, another] = [await makeProject(), await makeProject()]
    const here = requestOf(await admin.patch(`/projects/${project.id}`, { name: 'Renamed' }))
    const there = requestOf(await admin.patch(`/projects/${another.id}`, { name: 'Renamed' }))
    const nowhere = requestOf(await admin.patch(`/plans/${project.plan_id}`, { price: 5 }))
    const found = await requestsFound({ project_id: String(project.id) })
    assert.equal(found[0], here)
    assert.ok(!found.includes(there) && !found.includes(nowhere))
    const global = await requestsFound({ project_id: '0' })
    assert.equal(global[0], nowhere)
    assert.ok(!global.includes(here) && !global.includes(there))
    assert.deepEqual(await find({ project_id: '999999999' }), [])
  })

  test('filters by actor', async () => {
    const plan = await makePlan()
    const [mine, theirs] = [
      await admin.patch(`/plans/${plan.id}`, { price: 1 }),
      await other.patch(`/plans/${plan.id}`, { price: 2 }),
    ]
    assert.deepEqual(await requestsFound({ actor: String(other.userId) }), [requestOf(theirs)])
    assert.equal((await requestsFound({ actor: String(admin.userId) }))[0], requestOf(mine))
    assert.deepEqual(await find({ actor: '999999999' }), [])
  })

  test('filters by operation, resource type and resource', async () => {
    const project = await makeProject()
    const [first, second] = [await makeEndpoint(project.id), await makeEndpoint(project.id)]
    const rotated = await admin.post(`/projects/${project.id}/endpoints/${first.resource.id}/rotate`, {
      reason: 'Lost',
    })
    assert.deepEqual(await requestsFound({ operation: 'endpoints.rotate' }), [requestOf(rotated)])
    assert.equal((await find({ resource: 'endpoint', project_id: String(project.id) })).length, 3)
    assert.equal((await find({ resource: `endpoint:${first.resource.id}` })).length, 2)
    assert.equal((await find({ resource: `endpoint:${second.resource.id}` })).length, 1)
    assert.deepEqual(
      await find({ resource: `plan:${second.resource.id}`, project_id: String(project.id) }),
      [],
    )
  })

  test('filters by time, with an inclusive start and an exclusive end', async () => {
    const project = await makeProject()
    const times = ['2100-01-01T00:00:00.000Z', '2100-01-02T00:00:00.000Z', '2100-01-03T00:00:00.000Z']
    for (const time of times) await add(project.id, `select '${time}'::timestamptz as at`)
    const within = async (from: string, to: string) =>
      (await find({ project_id: String(project.id), from, to })).map(({ at }) => at)
    const [first = '', second = '', third = ''] = times
    assert.deepEqual(await within(first, third), [second, first])
    assert.deepEqual(await within(second, '2100-01-03T00:00:00.001Z'), [third, second])
    assert.deepEqual(await within('2100-01-01T00:00:00.001Z', second), [])
    assert.deepEqual(await within('2100-01-02T01:00:00+01:00', third), [second])
    assert.deepEqual(await within(third, first), [])
  })

  test('returns each row once for any page size while rows are added', async () => {
    const [project, another] = [await makeProject(), await makeProject()]
    const older = await addMany(project.id, 125)
    await addMany(another.id, 50)
    const ids = [...(await addMany(project.id, 125)), ...older]
    const addRow = async () => {
      await addMany(another.id, 1)
      await addMany(project.id, 1)
    }
    await assertEachRowOnce(admin, '/audit', ids, addRow, { project_id: String(project.id) })
  })

  test('filters by every mutation of the API', async () => {
    for (const [operation, { route, isRead }] of Object.entries(expectedAdminOperations)) {
      const { status } = await admin.get(`/audit?operation=${operation}`)
      assert.equal(status, route.startsWith('GET') || isRead ? 400 : 200, operation)
    }
  })

  test('rejects invalid cursors, limits and filters', async () => {
    const [lastId = 0] = await addMany((await makeProject()).id, 1)
    await assertStrictPaging(admin, '/audit', lastId)
    for (const query of [
      'project_id=-1',
      'actor=me',
      'actor=1e3',
      'resource=',
      'resource=endpoint:',
      'resource=Endpoint',
      'resource=endpoints:7',
      'operation=project.edit',
      'operation=endpoints',
      'operation=',
      'operation=projects.list',
      'resource=endpoint:7:8',
      'from=yesterday',
      'from=2026-01-01',
      'from=',
      'to=2026-02-30T00:00:00Z',
      'from=2026-12-31T23:59:60Z',
      'reason=Lost',
    ]) {
      const answer = await admin.get(`/audit?${query}`)
      assert.equal(answer.status, 400, query)
      assertProblem(answer, 400, 'invalid_parameter')
    }
  })
})
