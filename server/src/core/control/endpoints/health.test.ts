import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { endpointConfiguration, fixtures } from '../../../testing/fixtures/fixtures.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { crashAt, stepsOfBoth } from '../../../testing/harness/crash-points.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { fanOutAll } from '../../../testing/harness/fan-out.ts'
import { relayToControl } from '../../outbox/relay-to-control.ts'
import { relayToMail } from '../../outbox/relay-to-mail.ts'

/**
 * Endpoint states relayed from the mail database. No worker delivers events here; the outbox rows that a worker
 * would write are inserted with SQL.
 */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeEndpoint } = fixtures(database, admin)
const { admin: db } = api.context.db
const { mail: mailDb } = api.context.cells.all[0]
const deps = { db, mailDb }

const { id: projectId } = await makeProject()

const show = async (id: number) => {
  const { body, headers } = await admin.get(`/projects/${projectId}/endpoints/${id}`)
  return { ...body, etag: headers.get('etag') }
}
const edit = async (id: number, change: object) => {
  const { status, text } = await admin.patch(`/projects/${projectId}/endpoints/${id}`, {
    ...endpointConfiguration,
    ...change,
  })
  assert.equal(status, 200, text)
}
const waiting = async () => (await database.query('select from mail.outbox')).length

const write = (topic: string, payload: object) =>
  database.query('insert into mail.outbox (project_id, topic, payload) values ($1, $2, $3)', [
    projectId,
    topic,
    JSON.stringify(payload),
  ])

/** The state after a delivery. */
async function deliver(id: number, failures: number, lastSuccess: string | null): Promise<void> {
  await database.query(
    `insert into mail.endpoint_queues (endpoint_id, project_id, failures, last_success_at) values ($1, $2, $3, $4)
     on conflict (shard, endpoint_id) do update set failures = $3, last_success_at = $4`,
    [id, projectId, failures, lastSuccess],
  )
  await write('endpoint.stats_changed', { endpoint_id: id })
}

describe('endpoint.stats_changed', () => {
  test('updates the last success and the consecutive failures, but not the version', async () => {
    const { resource } = await makeEndpoint(projectId)
    await deliver(resource.id, 3, null)
    await relayToControl(deps)
    assert.deepEqual(await show(resource.id), { ...resource, consecutive_failures: 3, etag: '"1"' })
    await deliver(resource.id, 0, '2026-01-01T00:00:00.123Z')
    await deliver(resource.id, 0, '2026-01-02T00:00:00.123Z')
    assert.equal((await relayToControl(deps)).relayed, 1, 'one state, however many rows')
    const { last_success_at, consecutive_failures, etag } = await show(resource.id)
    assert.deepEqual([last_success_at, consecutive_failures, etag], ['2026-01-02T00:00:00.123Z', 0, '"1"'])
    assert.equal(await waiting(), 0)
  })

  test('does not replace a newer state with an older one', async () => {
    const { resource } = await makeEndpoint(projectId)
    await deliver(resource.id, 1, null)
    await relayToControl(deps)
    const setRead = (moment: string) =>
      database.query(`update control.endpoint_stats set counted_at = ${moment} where endpoint_id = $1`, [
        resource.id,
      ])
    await setRead(`clock_timestamp() + interval '1 hour'`)
    await deliver(resource.id, 2, null)
    await relayToControl(deps)
    assert.equal((await show(resource.id)).consecutive_failures, 1)
    assert.equal(await waiting(), 1, 'its row stays')
    await setRead(`'-infinity'`)
    await relayToControl(deps)
    assert.equal((await show(resource.id)).consecutive_failures, 2)
    assert.equal(await waiting(), 0)
  })

  test("is dropped for a deleted endpoint or another project's endpoint", async () => {
    const { id: other } = await makeProject()
    const { resource } = await makeEndpoint(other)
    await write('endpoint.stats_changed', { endpoint_id: 987_654_321 })
    await relayToControl(deps)
    assert.equal(await waiting(), 0)
    await write('endpoint.stats_changed', { endpoint_id: resource.id })
    await relayToControl(deps)
    assert.deepEqual(
      await database.query('select from control.endpoint_stats where endpoint_id = $1', [resource.id]),
      [],
    )
    assert.equal(await waiting(), 0)
  })

  test('does not wait for an endpoint edit, and is applied afterwards', async () => {
    const { resource } = await makeEndpoint(projectId)
    await deliver(resource.id, 4, null)
    await db.transaction(async (tx) => {
      await tx
        .selectFrom('control.endpoints')
        .select('id')
        .where('id', '=', resource.id)
        .forUpdate()
        .executeTakeFirst()
      assert.equal((await relayToControl(deps)).relayed, 0)
    })
    assert.equal((await relayToControl(deps)).relayed, 1)
    assert.equal((await show(resource.id)).consecutive_failures, 4)
  })
})

describe('endpoint.disabled', () => {
  const reason = 'Deliveries failed for five days.'
  const disable = (id: number) => write('endpoint.disabled', { endpoint_id: id, reason })
  const eventsOf = async (id: number) => {
    await relayToMail(deps)
    return database.query<{ data: object }>(
      `select data from mail.events where type = 'endpoint.disabled' and data @> $1`,
      [JSON.stringify({ id })],
    )
  }
  const noticesOf = (id: number) =>
    database.query(`select from control.system_mails where kind = 'endpoint_disabled' and subject_id = $1`, [
      id,
    ])

  test('disables the endpoint with a reason, and notifies the other endpoints', async () => {
    const { resource } = await makeEndpoint(projectId)
    const { resource: watching } = await makeEndpoint(projectId, { events: ['endpoint.disabled'] })
    await disable(resource.id)
    await relayToControl(deps)
    const after = await show(resource.id)
    assert.deepEqual(after, {
      ...resource,
      is_active: false,
      disabled_reason: reason,
      updated_at: after.updated_at,
      etag: '"2"',
    })
    assert.notEqual(after.updated_at, resource.updated_at)
    const { id, name, url } = resource
    assert.deepEqual(await eventsOf(id), [{ data: { id, name, url, reason } }])
    await fanOutAll(mailDb, database)
    const deliveries = await database.query<{ id: number }>(
      `select endpoint_id::int as id from mail.deliveries where project_id = $1`,
      [projectId],
    )
    assert.deepEqual(deliveries, [{ id: watching.id }])
    assert.equal((await noticesOf(id)).length, 1)
    assert.equal(await waiting(), 0)
  })

  test('does not change an endpoint that has since been edited', async () => {
    const changes: [string, (id: number) => Promise<unknown>][] = [
      ['edited', (id) => edit(id, { url: 'https://repaired.example.com/' })],
      ['switched off', (id) => edit(id, { is_active: false })],
      ['secret rotated', (id) => admin.post(`/projects/${projectId}/endpoints/${id}/rotate`, { reason })],
    ]
    for (const [what, change] of changes) {
      const { resource } = await makeEndpoint(projectId)
      await disable(resource.id)
      await change(resource.id)
      const before = await show(resource.id)
      await relayToControl(deps)
      assert.deepEqual(await show(resource.id), before, what)
      assert.deepEqual(await eventsOf(resource.id), [])
      assert.equal(await waiting(), 0)
    }
  })

  test('has no effect if repeated, or for a deleted endpoint', async () => {
    const { resource } = await makeEndpoint(projectId)
    await disable(resource.id)
    await disable(resource.id)
    await disable(987_654_321)
    assert.equal((await relayToControl(deps)).relayed, 1)
    assert.equal((await show(resource.id)).etag, '"2"')
    assert.equal((await eventsOf(resource.id)).length, 1)
    assert.equal(await waiting(), 0)
  })

  test('does not wait for a lock on the endpoint, and is applied afterwards', async () => {
    const { resource } = await makeEndpoint(projectId)
    await disable(resource.id)
    await db.transaction(async (tx) => {
      await tx
        .selectFrom('control.endpoints')
        .select('id')
        .where('id', '=', resource.id)
        .forUpdate()
        .executeTakeFirst()
      assert.equal((await relayToControl(deps)).relayed, 0)
      assert.equal(await waiting(), 1)
    })
    assert.equal((await relayToControl(deps)).relayed, 1)
  })

  test('is applied once, regardless of where the worker crashes', async () => {
    for (const step of stepsOfBoth) {
      for (const moment of ['before', 'after'] as const) {
        const { resource } = await makeEndpoint(projectId)
        await disable(resource.id)
        await assert.rejects(relayToControl(crashAt(deps, step, moment)), /crashed/)
        await relayToControl(deps)
        assert.equal((await show(resource.id)).etag, '"2"', `${moment} the ${step}`)
        assert.equal((await eventsOf(resource.id)).length, 1, `${moment} the ${step}`)
        assert.equal(await waiting(), 0)
      }
    }
  })
})
