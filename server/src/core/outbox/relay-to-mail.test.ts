import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { crashAt } from '../../testing/harness/crash-points.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'
import { fanOutAll } from '../../testing/harness/fan-out.ts'
import { publishToMail } from './outbox.ts'
import { relayToControl } from './relay-to-control.ts'
import { type OutboxDeps, purgeApplied, relayToMail } from './relay-to-mail.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeEndpoint } = fixtures(database, admin)
const { makeEvent } = mailRows(database)
const { admin: db } = api.context.db
const { mail: mailDb } = api.context.cells.all[0]
const deps: OutboxDeps = { db, mailDb }

const waiting = async () => (await database.query('select from control.outbox')).length
const eventsOf = async (projectId: number) =>
  database.query<{ type: string; data: unknown }>(
    'select type, data from mail.events where project_id = $1 order by created_at',
    [projectId],
  )
const deliveriesOf = async (projectId: number) => {
  await fanOutAll(mailDb, database)
  return database.query<{ endpoint: number; type: string }>(
    `select endpoint_id::int as endpoint, events.type
       from mail.deliveries join mail.events on events.id = event_id
      where deliveries.project_id = $1 order by 1`,
    [projectId],
  )
}

const lock = (id: number, is_locked: boolean) =>
  admin.patch(`/projects/${id}`, { is_locked, reason: 'Seen in the morning' })
const tell = (id: number) =>
  db.transaction((tx) => publishToMail(tx, id, 'event', { type: 'project.locked', data: { id } }))

describe('a message from control to mail', () => {
  test('can be an event for subscribers, without the reason and the actor', async () => {
    const { id } = await makeProject()
    const { resource: one } = await makeEndpoint(id, { events: ['project.locked', 'project.unlocked'] })
    await makeEndpoint(id, { events: ['message.bounced'] })
    await makeEndpoint(id, { events: ['project.locked'], is_active: false })
    await lock(id, true)
    assert.deepEqual(await eventsOf(id), [])
    await relayToMail(deps)
    await lock(id, true)
    await lock(id, false)
    await relayToMail(deps)
    const [{ id: intervention_id }] = (await admin.get(`/projects/${id}/interventions`)).body.data
    const data = { intervention_id, kind: 'lock', public_note: null, pace_per_hour: null, expires_at: null }
    assert.deepEqual(await eventsOf(id), [
      { type: 'project.intervened', data },
      { type: 'project.locked', data: { id } },
      { type: 'project.reinstated', data },
      { type: 'project.unlocked', data: { id } },
    ])
    assert.deepEqual(await deliveriesOf(id), [
      { endpoint: one.id, type: 'project.locked' },
      { endpoint: one.id, type: 'project.unlocked' },
    ])
    assert.equal(await waiting(), 0)
  })

  test('is not sent for a previewed or rejected change', async () => {
    const { id } = await makeProject()
    await admin.patch(`/projects/${id}?dry_run=true`, { is_locked: true, reason: 'To see' })
    await admin.patch(`/projects/${id}`, { is_locked: true })
    assert.equal(await waiting(), 0)
  })

  test('can be a test for only one endpoint', async () => {
    const { id } = await makeProject()
    const { resource } = await makeEndpoint(id)
    await makeEndpoint(id)
    await admin.post(`/projects/${id}/endpoints/${resource.id}/test`)
    await relayToMail(deps)
    assert.deepEqual(await deliveriesOf(id), [{ endpoint: resource.id, type: 'endpoint.test' }])
    assert.deepEqual((await eventsOf(id))[0]?.data, { endpoint_id: resource.id })
  })

  test("resets its endpoint's backoff if it is a test", async () => {
    const { id } = await makeProject()
    const { resource } = await makeEndpoint(id)
    await makeQueue(id, resource.id, { failures: 3 })
    await database.query(
      `update mail.endpoint_queues set backoff_until = postern.now() + interval '5 hours' where endpoint_id = $1`,
      [resource.id],
    )
    await admin.post(`/projects/${id}/endpoints/${resource.id}/test`)
    await relayToMail(deps)
    const [queue] = await database.query<{ rests: boolean; failures: number }>(
      'select backoff_until is not null as rests, failures from mail.endpoint_queues where endpoint_id = $1',
      [resource.id],
    )
    assert.deepEqual(queue, { rests: false, failures: 3 })
  })

  test('can be a replay of an event or of a time range', async () => {
    const { id } = await makeProject()
    const { resource } = await makeEndpoint(id)
    const path = `/projects/${id}/endpoints/${resource.id}/replay`
    const event_id = await makeEvent(id)
    const range = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z', only_undelivered: false }
    for (const body of [{ event_id }, range]) {
      const answer = await admin.post(path, body)
      assert.equal(answer.status, 202, answer.text)
    }
    await relayToMail(deps)
    assert.deepEqual(await deliveriesOf(id), [{ endpoint: resource.id, type: 'domain.verified' }])
    const [replay] = await database.query<{ is_range: boolean; only_undelivered: boolean }>(
      `select from_id = postern.uuid7_floor('2026-01-01Z') as is_range, only_undelivered
         from mail.replays where endpoint_id = $1`,
      [resource.id],
    )
    assert.deepEqual(replay, { is_range: true, only_undelivered: false })
  })

  test('clears the failures of an enabled endpoint', async () => {
    const { id } = await makeProject()
    const { resource } = await makeEndpoint(id, { is_active: false })
    await makeQueue(id, resource.id, { failures: 9 })
    const { name, url, events } = resource
    await admin.patch(`/projects/${id}/endpoints/${resource.id}`, { name, url, events, is_active: true })
    await relayToMail(deps)
    const [queue] = await database.query<{ failures: number }>(
      'select failures from mail.endpoint_queues where endpoint_id = $1',
      [resource.id],
    )
    assert.equal(queue?.failures, 0)
    await database.query(
      `insert into control.endpoint_stats (endpoint_id, project_id, consecutive_failures) values ($1, $2, 9)`,
      [resource.id, id],
    )
    await relayToControl(deps)
    const shown = await admin.get(`/projects/${id}/endpoints/${resource.id}`)
    assert.equal(shown.body.consecutive_failures, 0)
    const wakes = await database.query('select from mail.wakes where endpoint_id = $1', [resource.id])
    assert.equal(wakes.length, 1)
  })

  test("deletes a deleted endpoint's queue, or schedules the deletion of its deliveries", async () => {
    const { id } = await makeProject()
    const left = (endpointId: number) =>
      database.query<{ queues: number; wakes: number }>(
        `select (select count(*)::int from mail.endpoint_queues where endpoint_id = $1) as queues,
                (select count(*)::int from mail.wakes where endpoint_id = $1) as wakes`,
        [endpointId],
      )
    const remove = async (endpointId: number) => {
      await database.query('delete from mail.wakes')
      await admin.delete(`/projects/${id}/endpoints/${endpointId}`, { reason: 'Not needed' })
      await relayToMail(deps)
    }
    const { resource: idle } = await makeEndpoint(id)
    await makeQueue(id, idle.id)
    await remove(idle.id)
    assert.deepEqual(await left(idle.id), [{ queues: 0, wakes: 0 }])

    const { resource: busy } = await makeEndpoint(id, { events: ['project.locked'] })
    await lock(id, true)
    await relayToMail(deps)
    await fanOutAll(mailDb, database)
    await makeQueue(id, busy.id, { failures: 7 })
    await remove(busy.id)
    assert.deepEqual(await left(busy.id), [{ queues: 1, wakes: 1 }])
  })
})

describe('the control outbox', () => {
  test('is applied exactly once, regardless of where the worker crashes', async () => {
    const { id } = await makeProject()
    let expected = 0
    for (const step of ['mail read', 'mail transaction', 'admin transaction']) {
      for (const moment of ['before', 'after'] as const) {
        await tell(id)
        expected++
        await assert.rejects(relayToMail(crashAt(deps, step, moment)), /crashed|failed/)
        await relayToMail(deps)
        assert.equal((await eventsOf(id)).length, expected, `${moment} the ${step}`)
        assert.equal(await waiting(), 0)
      }
    }
  })

  test('is applied exactly once and in order by many concurrent workers', async () => {
    const projects = await Promise.all(Array.from({ length: 4 }, () => makeProject()))
    const pools = openDatabase(database, { poolSize: 8 })
    const busy = { db: pools.as('admin'), mailDb: pools.as('mail') }
    let isOver = false
    const workers = Array.from({ length: 3 }, async () => {
      while (!isOver) await relayToMail(busy)
    })
    const locks = Array.from({ length: 20 }, (_, n) => n % 2 === 0)
    await Promise.all(
      projects.map(async ({ id }) => {
        for (const isLocked of locks) assert.equal((await lock(id, isLocked)).status, 200)
      }),
    )
    isOver = true
    await Promise.all(workers)
    await relayToMail(deps)
    const expected = locks.flatMap((isLocked) =>
      isLocked ? ['project.intervened', 'project.locked'] : ['project.reinstated', 'project.unlocked'],
    )
    for (const { id } of projects) {
      assert.deepEqual(
        (await eventsOf(id)).map(({ type }) => type),
        expected,
      )
    }
  })

  test('does not skip a row that becomes visible after rows with higher ids', async () => {
    const [early, late] = [await makeProject(), await makeProject()]
    await db.transaction(async (tx) => {
      await publishToMail(tx, early.id, 'event', { type: 'project.locked', data: {} })
      await tell(late.id)
      assert.equal((await relayToMail(deps)).applied, 1)
    })
    assert.equal((await relayToMail(deps)).applied, 1)
    assert.deepEqual([(await eventsOf(early.id)).length, (await eventsOf(late.id)).length], [1, 1])
  })

  test('is not blocked by a row that cannot be applied', async () => {
    const { id } = await makeProject()
    // More rows than one batch.
    await database.query(
      `insert into control.outbox (project_id, topic, payload)
       select $1, 'endpoint.replay', '{"endpoint_id": 1, "event_id": "no uuid"}' from generate_series(1, 130)`,
      [id],
    )
    await tell(id)
    await assert.rejects(relayToMail(deps), /row \d+ of control\.outbox \(endpoint\.replay\) failed/)
    assert.equal((await eventsOf(id)).length, 1)
    assert.equal(await waiting(), 130)
    await database.query('delete from control.outbox')
  })

  test('ignores topics of a later release', async () => {
    await database.query(`insert into control.outbox (topic, payload) values ('of.tomorrow', '{}')`)
    assert.equal((await relayToMail(deps)).applied, 0)
    assert.equal(await waiting(), 1)
    await database.query('delete from control.outbox')
  })

  test('is not applied again by a worker that read it long ago', async () => {
    const { id } = await makeProject()
    await tell(id)
    const slow: typeof deps = {
      db,
      mailDb: {
        read: (work) => mailDb.read(work),
        readOne: (query) => mailDb.readOne(query),
        writeOne: (statement) => mailDb.writeOne(statement),
        dryRun: (work) => mailDb.dryRun(work),
        async transaction<T>(work: Parameters<typeof mailDb.transaction<T>>[0]) {
          await relayToMail(deps)
          await database.query(`update mail.control_applied set applied_at = applied_at - interval '2 days'`)
          await mailDb.transaction(purgeApplied)
          return mailDb.transaction(work)
        },
      },
    }
    await relayToMail(slow)
    assert.equal((await eventsOf(id)).length, 1)
  })

  test('retains applied ids for at least a day, and as long as the row exists', async () => {
    const { id } = await makeProject()
    const applied = async () => (await database.query('select from mail.control_applied')).length
    await database.query('delete from mail.control_applied')
    await tell(id)
    await assert.rejects(relayToMail(crashAt(deps, 'admin transaction', 'before')))
    await tell(id)
    const age = () =>
      database.query(`update mail.control_applied set applied_at = applied_at - interval '25 hours'`)
    await age()
    await mailDb.transaction(purgeApplied)
    assert.equal(await applied(), 1, 'its row still exists')
    await relayToMail(deps)
    await mailDb.transaction(purgeApplied)
    assert.equal(await applied(), 1, 'the second is recent')
    await age()
    await mailDb.transaction(purgeApplied)
    assert.equal(await applied(), 0)
    assert.equal((await eventsOf(id)).length, 2)
  })
})

async function makeQueue(projectId: number, endpointId: number, { failures = 0 } = {}): Promise<void> {
  await database.query(
    `insert into mail.endpoint_queues (endpoint_id, project_id, failures, failing_since, due_at)
     values ($1, $2, $3, postern.now(), postern.now() + interval '1 hour')`,
    [endpointId, projectId, failures],
  )
}
