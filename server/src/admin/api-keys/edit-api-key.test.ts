import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { apiKeyConfiguration, fixtures, routeConfiguration } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { editApiKeyOperation } from './edit-api-key.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDomain, makeRoute, makeApiKey } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const { id: projectId } = await makeProject()
const pathOf = (id: number, project = projectId) => `/projects/${project}/api-keys/${id}`
const edit = (id: number, change: object) => admin.patch(pathOf(id), { ...apiKeyConfiguration, ...change })
const show = async (id: number) => (await admin.get(pathOf(id))).body
const hashOf = async (id: number) =>
  (
    await database.query<{ hash: string }>(
      'select secret_hash::text as hash from control.api_keys where id = $1',
      [id],
    )
  )[0]?.hash
const preview = async (id: number, change: object) => {
  const answer = await admin.patch(`${pathOf(id)}?dry_run=true`, { ...apiKeyConfiguration, ...change })
  assert.equal(answer.status, 200, answer.text)
  return answer.body as { effects: string[]; warnings: string[] }
}

describe('api-keys.edit', () => {
  test('replaces the configuration without a reason and keeps the secret', async () => {
    const { resource: before } = await makeApiKey(projectId)
    const hash = await hashOf(before.id)
    const configuration = {
      name: 'Newsletter',
      scopes: ['suppressions:read', 'usage:read'],
      domain_id: (await makeDomain(projectId)).id,
      allowed_ips: ['198.51.100.0/24'],
      expires_at: '2099-01-01T00:00:00.000Z',
      is_active: false,
    }
    const answer = await edit(before.id, configuration)
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(answer.body, { ...before, ...configuration, updated_at: answer.body.updated_at })
    assert.ok(answer.body.updated_at > before.updated_at)
    assert.equal(answer.headers.get('etag'), '"2"')
    assert.deepEqual(await show(before.id), answer.body)
    assert.equal(await hashOf(before.id), hash)
    const { prefix } = before
    await assertAudited(answer, {
      operation: 'api-keys.edit',
      project_id: projectId,
      resource: ['api_key', before.id],
      before: { ...apiKeyConfiguration, mode: 'live', prefix },
      after: { ...configuration, mode: 'live', prefix },
    })
  })

  test('changes a single field if all others are unchanged, and records the reason', async () => {
    for (const change of [
      { name: 'Renamed' },
      { scopes: ['messages:send'] },
      { domain_id: (await makeDomain(projectId)).id },
      { allowed_ips: [] },
      { expires_at: '2099-01-01T00:00:00.000Z' },
      { is_active: false },
    ]) {
      const { resource: before } = await makeApiKey(projectId)
      const answer = await edit(before.id, { ...change, reason: 'Asked for' })
      assert.deepEqual(answer.body, { ...before, ...change, updated_at: answer.body.updated_at })
      const kept = { ...apiKeyConfiguration, mode: 'live', prefix: before.prefix }
      await assertAudited(answer, {
        operation: 'api-keys.edit',
        project_id: projectId,
        resource: ['api_key', before.id],
        reason: 'Asked for',
        before: kept,
        after: { ...kept, ...change },
      })
    }
  })

  test('requires the complete configuration and names every missing field', async () => {
    assert.match(editApiKeyOperation.description, /complete, not partial/)
    const { resource } = await makeApiKey(projectId)
    for (const field of Object.keys(apiKeyConfiguration)) {
      const answer = await edit(resource.id, { [field]: undefined })
      assertProblem(answer, 422, 'incomplete_configuration')
      assert.ok(answer.body.message.includes(`lacks "${field}"`), answer.text)
      await assertNotAudited(answer)
    }
    const answer = await admin.patch(pathOf(resource.id), { name: 'Renamed', reason: 'Only the name' })
    assertProblem(answer, 422, 'incomplete_configuration')
    assert.match(answer.body.message, /"scopes", "domain_id", "allowed_ips", "expires_at", "is_active"/)
    assertProblem(await admin.patch(pathOf(resource.id), {}), 422, 'incomplete_configuration')
    assert.deepEqual(await show(resource.id), resource)
  })

  test('never changes address routes, and rejects a body that contains any', async () => {
    assert.match(editApiKeyOperation.description, /never touches address routes/)
    const [old, young] = [await makeDomain(projectId), await makeDomain(projectId)]
    const { resource } = await makeApiKey(projectId, { domain_id: old.id })
    const match = { ...routeConfiguration, match: 'address', address: `support@${old.name}` } as const
    const route = await makeRoute(projectId, { ...match, domain_id: old.id })
    const address = `support@${young.name}`
    for (const named of [
      { preserve_local_parts: true },
      { preserve_local_parts: false },
      { route_replacements: [] },
      { route_replacements: [{ route_id: route.id, address }] },
      { routes: [route.id] },
      { address },
      { mta_provider: 'ses' },
    ]) {
      const answer = await edit(resource.id, { domain_id: young.id, ...named })
      assertProblem(answer, 422, 'validation_failed')
      assert.match(answer.body.message, new RegExp(`"${Object.keys(named)[0]}" is not a field`))
      await assertNotAudited(answer)
    }
    assert.deepEqual(await show(resource.id), resource)
    const moved = await edit(resource.id, { domain_id: young.id })
    assert.equal(moved.body.domain_id, young.id)
    assert.deepEqual((await admin.get(`/projects/${projectId}/routing/${route.id}`)).body, route)
  })

  test('keeps the key bound to an unverified domain, and warns that the key cannot send', async () => {
    assert.match(editApiKeyOperation.description, /A key bound to an unverified domain cannot send/)
    assert.match(editApiKeyOperation.description, /replacement identity and resets its verification/)
    const domain = await makeDomain(projectId, { status: 'verified' })
    const { resource } = await makeApiKey(projectId, { domain_id: domain.id })
    const bound = { domain_id: domain.id, name: 'Renamed' }
    assert.deepEqual((await preview(resource.id, bound)).warnings, [])
    await database.query(`update control.domains set status = 'pending' where id = $1`, [domain.id])
    assert.deepEqual((await preview(resource.id, bound)).warnings, [
      `Domain ${domain.name} is not verified: the key cannot send until it is.`,
    ])
    assert.equal((await edit(resource.id, bound)).body.domain_id, domain.id)
  })

  test('applies the rules of a new key, and rejects mode and secret', async () => {
    const { resource } = await makeApiKey(projectId)
    const theirs = await makeDomain((await makeProject()).id)
    for (const change of [
      { name: '' },
      { scopes: [] },
      { scopes: ['api-keys:write'] },
      { domain_id: theirs.id },
      { domain_id: 999_999_999 },
      { allowed_ips: ['192.0.2.7/24'] },
      { expires_at: '2020-01-01T00:00:00Z' },
      { is_active: 'yes' },
      { mode: 'test' },
      { secret: 'pk_live_mine' },
      { prefix: 'pk_live_mine' },
      { last_used_at: null },
    ]) {
      const answer = await edit(resource.id, change)
      assertProblem(answer, 422, 'validation_failed')
      await assertNotAudited(answer)
    }
    assert.deepEqual(await show(resource.id), resource)
  })

  test('keeps an expiry time in the past, but rejects a new one', async () => {
    const { resource } = await makeApiKey(projectId)
    await database.query(`update control.api_keys set expires_at = '2024-02-29T00:00:00Z' where id = $1`, [
      resource.id,
    ])
    const passed = '2024-02-29T00:00:00.000Z'
    const renamed = await edit(resource.id, { name: 'Renamed', expires_at: '2024-02-29T01:00:00+01:00' })
    assert.deepEqual([renamed.status, renamed.body.expires_at], [200, passed])
    const other = await edit(resource.id, { expires_at: '2024-02-29T00:00:00.001Z' })
    assertProblem(other, 422, 'validation_failed')
    assert.match(other.body.message, /"expires_at" must be in the future/)
    assert.equal((await edit(resource.id, { expires_at: null })).body.expires_at, null)
    assertProblem(await edit(resource.id, { expires_at: passed }), 422, 'validation_failed')
  })

  test('keeps the version and writes no audit row if nothing changes, regardless of notation', async () => {
    const expires_at = '2099-01-01T00:00:00.000Z'
    const { resource } = await makeApiKey(projectId, { expires_at })
    const answer = await edit(resource.id, {
      name: ` ${apiKeyConfiguration.name} `,
      scopes: [...apiKeyConfiguration.scopes].reverse(),
      allowed_ips: ['192.0.2.0/24', '2001:DB8::0:7/128'],
      expires_at: '2099-01-01T02:00:00.0009+02:00',
      reason: 'To be sure',
    })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(answer.body, resource)
    assert.equal(answer.headers.get('etag'), '"1"')
    await assertNotAudited(answer)
  })

  test("returns the same 404 for another project's key as for a missing one", async () => {
    const { resource } = await makeApiKey(projectId)
    const other = await makeProject()
    for (const path of [
      pathOf(resource.id, other.id),
      pathOf(resource.id, 999_999_999),
      pathOf(999_999_999),
    ]) {
      const answer = await admin.patch(path, { ...apiKeyConfiguration, name: 'Stolen' })
      assertProblem(answer, 404, 'not_found')
      await assertNotAudited(answer)
    }
    assert.deepEqual(await show(resource.id), resource)
  })
})

describe('preview of api-keys.edit', () => {
  test('describes the effect of each change', async () => {
    const { resource } = await makeApiKey(projectId)
    const domain = await makeDomain(projectId, { status: 'verified' })
    const cases: [change: object, effect: string][] = [
      [{ is_active: false }, 'Requests with this key are rejected immediately.'],
      [{ scopes: ['messages:send'] }, 'Scopes removed: messages:read.'],
      [{ scopes: ['messages:send', 'messages:read', 'usage:read'] }, 'Scopes added: usage:read.'],
      [{ domain_id: domain.id }, `The key can send only from domain ${domain.id}.`],
      [{ allowed_ips: ['::1'] }, 'The key can be used only from: ::1.'],
      [{ allowed_ips: [] }, 'The key can be used from any IP address.'],
      [{ expires_at: '2099-01-01T00:00:00Z' }, 'The key expires at 2099-01-01T00:00:00.000Z.'],
    ]
    for (const [change, effect] of cases) {
      assert.deepEqual((await preview(resource.id, change)).effects, [effect])
    }
    const full = { domain_id: domain.id, expires_at: '2099-01-01T00:00:00Z', is_active: false }
    assert.equal((await edit(resource.id, full)).status, 200)
    assert.deepEqual((await preview(resource.id, {})).effects, [
      'The existing secret is accepted again.',
      'The key can send from every domain of the project.',
      'The key does not expire.',
    ])
    assert.deepEqual((await preview(resource.id, full)).effects, [])
  })
})
