import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { livingSecret } from '../../testing/expectations/endpoint-secrets.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { endpointConfiguration, fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeEndpoint, makeRouteTo } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const { id: projectId } = await makeProject()
const edit = (id: number, change: object, project = projectId) =>
  admin.patch(`/projects/${project}/endpoints/${id}`, { ...endpointConfiguration, ...change })
const show = async (id: number) => (await admin.get(`/projects/${projectId}/endpoints/${id}`)).body

describe('endpoints.edit', () => {
  test('replaces the configuration without a reason and keeps the secret', async () => {
    const { resource: before, secret } = await makeEndpoint(projectId)
    const configuration = {
      name: 'Renamed',
      url: 'https://other.example.com/v2',
      events: ['message.complained', 'inbound.received'],
      is_active: false,
    }
    const answer = await edit(before.id, configuration)
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(answer.body, { ...before, ...configuration, updated_at: answer.body.updated_at })
    assert.equal(answer.headers.get('etag'), '"2"')
    assert.deepEqual(await show(before.id), answer.body)
    assert.equal(await livingSecret(database, api, before), secret)
    await assertAudited(answer, {
      operation: 'endpoints.edit',
      project_id: projectId,
      resource: ['endpoint', before.id],
      before: { ...endpointConfiguration, secret_hint: before.secret_hint },
      after: { ...configuration, secret_hint: before.secret_hint },
    })
  })

  test('changes a single field if all others are unchanged', async () => {
    for (const change of [
      { name: 'Renamed' },
      { url: 'https://hooks.example.com/v2' },
      { events: [] },
      { is_active: false },
    ]) {
      const { resource: before } = await makeEndpoint(projectId)
      const answer = await edit(before.id, { ...change, reason: 'Asked for' })
      assert.deepEqual(answer.body, { ...before, ...change, updated_at: answer.body.updated_at })
      await assertAudited(answer, {
        operation: 'endpoints.edit',
        project_id: projectId,
        resource: ['endpoint', before.id],
        reason: 'Asked for',
        before: { ...endpointConfiguration, secret_hint: before.secret_hint },
        after: { ...endpointConfiguration, ...change, secret_hint: before.secret_hint },
      })
    }
  })

  test('names every missing field, and makes no partial change', async () => {
    const { resource } = await makeEndpoint(projectId)
    const path = `/projects/${projectId}/endpoints/${resource.id}`
    for (const field of Object.keys(endpointConfiguration)) {
      const answer = await edit(resource.id, { name: 'Renamed', [field]: undefined })
      assertProblem(answer, 422, 'incomplete_configuration')
      assert.ok(answer.body.message.includes(`"${field}"`), answer.text)
      await assertNotAudited(answer)
    }
    const answer = await admin.patch(path, { name: 'Renamed', reason: 'Only the name' })
    assertProblem(answer, 422, 'incomplete_configuration')
    assert.match(answer.body.message, /"url", "events", "is_active"/)
    assertProblem(await admin.patch(path, {}), 422, 'incomplete_configuration')
    assert.deepEqual(await show(resource.id), resource)
  })

  test('applies the rules of a new endpoint to name, URL and events', async () => {
    const { resource } = await makeEndpoint(projectId)
    for (const change of [
      { name: '' },
      { url: 'http://hooks.example.com/' },
      { url: 'https://127.0.0.1/' },
      { events: ['message.lost'] },
      { events: null },
      { is_active: 'yes' },
      { secret: 'whsec_mine' },
      { consecutive_failures: 0 },
    ]) {
      const answer = await edit(resource.id, change)
      assertProblem(answer, 422, 'validation_failed')
      await assertNotAudited(answer)
    }
    assert.deepEqual(await show(resource.id), resource)
  })

  test('keeps the version and writes no audit row if nothing changes, regardless of notation', async () => {
    const { resource } = await makeEndpoint(projectId)
    const answer = await edit(resource.id, {
      name: ` ${endpointConfiguration.name} `,
      url: 'HTTPS://HOOKS.example.com:443/events',
      events: [...endpointConfiguration.events].reverse(),
      reason: 'To be sure',
    })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(answer.body, resource)
    assert.equal(answer.headers.get('etag'), '"1"')
    await assertNotAudited(answer)
  })

  test('clears disabled_reason when a user activates the endpoint', async () => {
    const { resource } = await makeEndpoint(projectId)
    await database.query(
      `update control.endpoints set is_active = false, disabled_reason = 'It failed for five days' where id = $1`,
      [resource.id],
    )
    const renamed = await edit(resource.id, { name: 'Renamed', is_active: false })
    assert.equal(renamed.body.disabled_reason, 'It failed for five days')
    const on = await edit(resource.id, { is_active: true })
    assert.deepEqual([on.body.is_active, on.body.disabled_reason], [true, null])
  })

  test('warns in its preview about routes that still send inbound mail to it', async () => {
    const { resource } = await makeEndpoint(projectId)
    const warningsOf = async (change: object): Promise<string[]> => {
      const path = `/projects/${projectId}/endpoints/${resource.id}?dry_run=true`
      return (await admin.patch(path, { ...endpointConfiguration, ...change })).body.warnings
    }
    const moved = { url: 'https://hooks.example.com/v2' }
    assert.deepEqual([await warningsOf({ is_active: false }), await warningsOf(moved)], [[], []])
    const { id } = await makeRouteTo(projectId, resource.id)
    assert.deepEqual(await warningsOf({ is_active: false }), [
      `These routes still send inbound mail to the endpoint, which will not receive it: ${id}.`,
    ])
    assert.deepEqual(await warningsOf(moved), [
      `Inbound mail from these routes is also sent to the new URL: ${id}.`,
    ])
    assert.deepEqual(await warningsOf({ name: 'Renamed' }), [])
  })

  test("returns the same 404 for another project's endpoint as for a missing one", async () => {
    const { resource } = await makeEndpoint(projectId)
    const other = await makeProject()
    for (const answer of [
      await edit(resource.id, { name: 'Stolen' }, other.id),
      await edit(resource.id, { name: 'Stolen' }, 999_999_999),
      await edit(999_999_999, { name: 'Stolen' }),
    ]) {
      assertProblem(answer, 404, 'not_found')
      await assertNotAudited(answer)
    }
    assert.deepEqual(await show(resource.id), resource)
  })
})
