import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { holdingBack } from '../../testing/harness/lock-queue.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDomain, makeEndpoint, makeRoute } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const { id: projectId } = await makeProject()
const domain = await makeDomain(projectId, { name: 'shop.example.com', status: 'verified' })
const { resource: endpoint } = await makeEndpoint(projectId)

let numbers = 0
/** With a unique address. */
const configuration = () => ({
  domain_id: domain.id,
  match: 'address' as const,
  address: `box${++numbers}@shop.example.com`,
  action: 'forward' as const,
  endpoint_id: null,
  forward_to: 'ada@example.net',
  is_active: true,
})
const pathOf = (id: number, project = projectId) => `/projects/${project}/routing/${id}`
const show = async (id: number) => (await admin.get(pathOf(id))).body
const preview = async (id: number, body: object) => {
  const answer = await admin.patch(`${pathOf(id)}?dry_run=true`, body)
  assert.equal(answer.status, 200, answer.text)
  return answer.body as { effects: string[]; warnings: string[]; changes: object[] }
}

describe('routing.edit', () => {
  test('replaces the configuration without a reason', async () => {
    const before = configuration()
    const route = await makeRoute(projectId, before)
    const { id: domain_id } = await makeDomain(projectId)
    const after = {
      domain_id,
      match: 'catch_all',
      address: null,
      action: 'endpoint',
      endpoint_id: endpoint.id,
      forward_to: null,
      is_active: false,
    }
    const answer = await admin.patch(pathOf(route.id), after)
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(answer.body, { ...route, ...after, updated_at: answer.body.updated_at })
    assert.ok(answer.body.updated_at > route.updated_at)
    assert.equal(answer.headers.get('etag'), '"2"')
    assert.deepEqual(await show(route.id), answer.body)
    await assertAudited(answer, {
      operation: 'routing.edit',
      project_id: projectId,
      resource: ['route', route.id],
      before,
      after,
    })
  })

  test('changes a single field if all others are unchanged, and records the reason', async () => {
    const { name, id: domain_id } = await makeDomain(projectId)
    for (const change of [
      { address: 'elsewhere@shop.example.com' },
      { match: 'catch_all', address: null },
      { domain_id, address: `box@${name}` },
      { forward_to: 'grace@example.net' },
      { action: 'reject', forward_to: null },
      { action: 'endpoint', endpoint_id: endpoint.id, forward_to: null },
      { is_active: false },
    ]) {
      const before = configuration()
      const route = await makeRoute(projectId, before)
      const answer = await admin.patch(pathOf(route.id), { ...before, ...change, reason: 'Asked for' })
      assert.deepEqual(answer.body, { ...route, ...change, updated_at: answer.body.updated_at })
      await assertAudited(answer, {
        operation: 'routing.edit',
        project_id: projectId,
        resource: ['route', route.id],
        reason: 'Asked for',
        before,
        after: { ...before, ...change },
      })
    }
  })

  test('names every missing field, and makes no partial change', async () => {
    const before = configuration()
    const route = await makeRoute(projectId, before)
    for (const field of Object.keys(before)) {
      const answer = await admin.patch(pathOf(route.id), { ...before, [field]: undefined })
      assertProblem(answer, 422, 'incomplete_configuration')
      assert.ok(answer.body.message.includes(`lacks "${field}"`), answer.text)
      await assertNotAudited(answer)
    }
    const answer = await admin.patch(pathOf(route.id), { is_active: false, reason: 'Only this' })
    assertProblem(answer, 422, 'incomplete_configuration')
    assert.match(
      answer.body.message,
      /"domain_id", "match", "address", "action", "endpoint_id", "forward_to"/,
    )
    assertProblem(await admin.patch(pathOf(route.id), {}), 422, 'incomplete_configuration')
    assert.deepEqual(await show(route.id), route)
  })

  test('applies the rules of a new route', async () => {
    const before = configuration()
    const route = await makeRoute(projectId, before)
    const other = await makeProject()
    const [theirs, { resource: theirHook }] = [await makeDomain(other.id), await makeEndpoint(other.id)]
    for (const change of [
      { address: 'box@example.com' },
      { address: 'box' },
      { address: null },
      { match: 'catch_all' },
      { forward_to: null },
      { forward_to: 'box@shop.example.com' },
      { forward_to: 'nobody' },
      { action: 'drop' },
      { endpoint_id: endpoint.id },
      { action: 'endpoint', endpoint_id: theirHook.id, forward_to: null },
      { domain_id: theirs.id, address: `box@${theirs.name}` },
      // The address is not moved.
      { domain_id: (await makeDomain(projectId)).id },
      { preserve_local_parts: true },
      { id: 7 },
    ]) {
      const answer = await admin.patch(pathOf(route.id), { ...before, ...change })
      assertProblem(answer, 422, 'validation_failed')
      await assertNotAudited(answer)
    }
    assert.deepEqual(await show(route.id), route)
  })

  test('rejects an address or catch-all that another route already has', async () => {
    const [mine, taken] = [configuration(), configuration()]
    const route = await makeRoute(projectId, mine)
    const { id: takenBy } = await makeRoute(projectId, taken)
    const { id: domain_id, name } = await makeDomain(projectId)
    const { id: catchAll } = await makeRoute(projectId, { domain_id })
    for (const [change, owner] of [
      [{ address: taken.address.toUpperCase() }, takenBy],
      [{ domain_id, match: 'catch_all', address: null }, catchAll],
    ] as const) {
      const answer = await admin.patch(pathOf(route.id), { ...mine, ...change })
      assertProblem(answer, 409, 'already_exists')
      assert.match(answer.body.message, new RegExp(`route ${owner}\\.`))
      await assertNotAudited(answer)
    }
    assert.deepEqual(await show(route.id), route)
    // The same local part in another domain is a different address.
    const moved = { domain_id, address: `${mine.address.split('@')[0]}@${name}` }
    assert.equal((await admin.patch(pathOf(route.id), { ...mine, ...moved })).status, 200)
  })

  test('accepts one of two concurrent changes to the same address', async () => {
    const [one, two] = [configuration(), configuration()]
    const routes = [await makeRoute(projectId, one), await makeRoute(projectId, two)]
    const answers = await Promise.all(
      routes.map(({ id }) => admin.patch(pathOf(id), { ...one, address: 'same@shop.example.com' })),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409])
  })

  test('keeps the version and writes no audit row if nothing changes, regardless of notation', async () => {
    const before = configuration()
    const route = await makeRoute(projectId, before)
    const answer = await admin.patch(pathOf(route.id), {
      ...before,
      address: before.address.toUpperCase(),
      forward_to: 'ada@EXAMPLE.NET',
      reason: 'To be sure',
    })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(answer.body, route)
    assert.equal(answer.headers.get('etag'), '"1"')
    await assertNotAudited(answer)
    const { effects, warnings, changes } = await preview(route.id, before)
    assert.deepEqual([effects, warnings, changes], [[], [], []])
  })

  test('waits for the lock on the project, like a rename of its domain, and sees the result', async () => {
    const before = configuration()
    const route = await makeRoute(projectId, before)
    const moved = before.address.replace('box', 'moved')
    const answer = await holdingBack(
      database,
      `select from control.projects where id = ${projectId} for no key update;
       update control.routes set address = '${moved}', version = version + 1 where id = ${route.id}`,
      () => admin.patch(pathOf(route.id), { ...before, action: 'drop', forward_to: null }),
    )
    assert.equal(answer.headers.get('etag'), '"3"')
    await assertAudited(answer, {
      operation: 'routing.edit',
      project_id: projectId,
      resource: ['route', route.id],
      before: { ...before, address: moved },
      after: { ...before, action: 'drop', forward_to: null },
    })
  })

  test("returns the same 404 for another project's route as for a missing one", async () => {
    const before = configuration()
    const route = await makeRoute(projectId, before)
    const other = await makeProject()
    for (const path of [pathOf(route.id, other.id), pathOf(route.id, 999_999_999), pathOf(999_999_999)]) {
      const answer = await admin.patch(path, { ...before, is_active: false })
      assertProblem(answer, 404, 'not_found')
      await assertNotAudited(answer)
    }
    assert.deepEqual(await show(route.id), route)
  })
})

describe('preview of routing.edit', () => {
  test('names the route that receives mail for the previous address', async () => {
    const { id: domain_id, name } = await makeDomain(projectId)
    const before = { ...configuration(), domain_id, address: `a@${name}` }
    const route = await makeRoute(projectId, before)
    const moved = { ...before, address: `b@${name}` }
    assert.deepEqual((await preview(route.id, moved)).effects, [
      `Mail for b@${name} is forwarded to ada@example.net.`,
      `No other route accepts mail for a@${name}: it is rejected.`,
    ])
    const all = await makeRoute(projectId, { domain_id, action: 'endpoint', endpoint_id: endpoint.id })
    const falls = `The catch-all (route ${all.id}) receives mail for a@${name}: it is delivered to endpoint ${endpoint.id} (Events).`
    assert.deepEqual((await preview(route.id, moved)).effects, [
      `Mail for b@${name} is forwarded to ada@example.net.`,
      `The catch-all (route ${all.id}) does not receive mail for b@${name}.`,
      falls,
    ])
    assert.deepEqual((await preview(route.id, { ...before, is_active: false })).effects, [
      'The route is inactive and receives no mail.',
      falls,
    ])
  })

  test('omits mail that an inactive route never received', async () => {
    const { id: domain_id, name } = await makeDomain(projectId)
    const before = { ...configuration(), domain_id, address: `a@${name}`, is_active: false }
    const route = await makeRoute(projectId, before)
    assert.deepEqual((await preview(route.id, { ...before, address: `b@${name}` })).effects, [
      'The route is inactive and receives no mail.',
    ])
    assert.deepEqual((await preview(route.id, { ...before, is_active: true })).effects, [
      `Mail for a@${name} is forwarded to ada@example.net.`,
    ])
  })
})
