import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { madeAt } from '../../../platform/ids.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { eventually } from '../../../testing/harness/waiting.ts'
import { assertDated, retryDelay, webhookHarness } from '../../../testing/harness/webhook-harness.ts'
import { keepPartitions } from '../dispatch/partitions.ts'
import { listByEndpoint } from './attempts.sql.ts'
import { stepReplay } from './replays.ts'
import { deliverAgain, startReplay, wakeQueue } from './webhooks.ts'

/** Redelivery, replays, waking an endpoint, and the list of attempts. */
const database = await testDatabase()
const stage = await webhookHarness(database)
const { mail, receiver, makeProject, makeEndpoint, publishEvents } = stage
let worker = stage.startWorker()

const pathOf = (path: string) => receiver.got.filter((received) => received.path === path)

const replayed = (endpointId: number) =>
  eventually(`the replay of endpoint ${endpointId} has ended`, async () => {
    const rows = await database.query('select from mail.replays where endpoint_id = $1', [endpointId])
    return rows.length === 0
  })

describe('a redelivered event', () => {
  test("arrives again and ends the endpoint's backoff", async () => {
    const endpoint = await makeEndpoint(await makeProject())
    const { project_id } = endpoint
    const [id = ''] = await publishEvents(project_id)
    await receiver.until(1, endpoint.path)
    await stage.untilQuiet(endpoint)
    receiver.answer({ status: 503, headers: { 'retry-after': '3600' } }, endpoint.path)
    await publishEvents(project_id)
    await receiver.until(2, endpoint.path)
    await stage.untilQuiet(endpoint)
    receiver.answer({ status: 204 }, endpoint.path)
    assert.equal(await mail.transaction((tx) => deliverAgain(tx, project_id, endpoint.id, id)), true)
    const got = await receiver.until(3, endpoint.path)
    assert.equal(got[2]?.headers['webhook-id'], id)
    assert.equal(got[2]?.body, got[0]?.body)
  })

  test('must exist and belong to the project', async () => {
    const [one, other] = [await makeEndpoint(await makeProject()), await makeEndpoint(await makeProject())]
    const [id = ''] = await publishEvents(one.project_id)
    const again = (projectId: number, endpointId: number, eventId: string) =>
      mail.transaction((tx) => deliverAgain(tx, projectId, endpointId, eventId))
    assert.equal(await again(other.project_id, other.id, id), false)
    assert.equal(await again(one.project_id, other.id, id), false)
    assert.equal(await again(one.project_id, one.id, '01900000-0000-7000-8000-000000000000'), false)
  })
})

describe('a replay', () => {
  const always = { from: new Date('2026-01-01'), to: new Date('2100-01-01') }

  test('delivers all subscribed events at a hundred per second, with one replay per endpoint', async () => {
    const endpoint = await makeEndpoint(await makeProject())
    const { project_id } = endpoint
    // Published first, so their ids are among the first 500.
    await publishEvents(project_id, 5, { type: 'domain.verified' })
    for (let no = 0; no < 7; no++) await publishEvents(project_id, 100)
    await receiver.until(700, endpoint.path)
    await stage.untilQuiet(endpoint)
    const start = () =>
      mail.transaction((tx) =>
        startReplay(tx, project_id, endpoint.id, { ...always, onlyUndelivered: false }),
      )
    // The test runs the first step itself and checks its result.
    await worker.stop()
    try {
      assert.deepEqual([await start(), await start()], [true, false])
      const before = await stage.now()
      assert.equal(await mail.transaction(stepReplay), true)
      const after = await stage.now()
      const [replay] = await database.query<{ due_at: Date }>(
        'select due_at from mail.replays where endpoint_id = $1',
        [endpoint.id],
      )
      assert.equal(await stage.waitingFor(endpoint), 495)
      // A hundredth of a second for each event that the endpoint subscribes to.
      assertDated(replay?.due_at ?? null, 4_950, before, after)
    } finally {
      worker = stage.startWorker()
    }
    const got = await receiver.until(1400, endpoint.path)
    await replayed(endpoint.id)
    await stage.untilQuiet(endpoint)
    assert.equal(pathOf(endpoint.path).length, 1400)
    assert.equal(new Set(got.map(({ headers }) => headers['webhook-id'])).size, 700)
    assert.equal(await start(), true, 'another replay can start')
    await database.query('delete from mail.replays')
  })

  test('of undelivered events skips delivered events and events outside its range', async () => {
    const endpoint = await makeEndpoint(await makeProject())
    const { project_id } = endpoint
    const [early = ''] = await publishEvents(project_id)
    await receiver.until(1, endpoint.path)
    await stage.untilQuiet(endpoint)
    receiver.answer({ status: 410 }, endpoint.path)
    const lost = await publishEvents(project_id, 3)
    await receiver.until(2, endpoint.path)
    await stage.untilQuiet(endpoint)
    receiver.answer({ status: 204 }, endpoint.path)
    await stage.pass(endpoint, '1 hour')
    const range = { from: new Date(Date.now() - 3_600_000), to: new Date(Date.now() + 60_000) }
    await mail.transaction((tx) =>
      startReplay(tx, project_id, endpoint.id, { ...range, onlyUndelivered: true }),
    )
    await replayed(endpoint.id)
    await stage.untilQuiet(endpoint)
    const after = pathOf(endpoint.path).filter(({ headers }) => headers['webhook-id'] !== early)
    const delivered = (await stage.attemptsOf(endpoint)).filter(({ outcome }) => outcome === 'delivered')
    assert.deepEqual(new Set(delivered.map(({ event_id }) => event_id)), new Set([early, ...lost]))
    assert.ok(after.length >= 3)
    assert.equal(pathOf(endpoint.path).filter(({ headers }) => headers['webhook-id'] === early).length, 1)

    const past = { from: new Date('2026-01-01'), to: new Date('2026-01-02') }
    await mail.transaction((tx) =>
      startReplay(tx, project_id, endpoint.id, { ...past, onlyUndelivered: false }),
    )
    await replayed(endpoint.id)
    await stage.untilQuiet(endpoint)
    assert.equal(pathOf(endpoint.path).length, 1 + after.length)
  })
})

describe('an endpoint that is woken', () => {
  test('has its failures cleared and is retried immediately', async () => {
    const endpoint = await makeEndpoint(await makeProject())
    const { project_id } = endpoint
    receiver.answer({ status: 500 }, endpoint.path)
    await publishEvents(project_id)
    for (let retry = 1; retry <= 3; retry++) {
      await stage.untilQuiet(endpoint)
      await stage.pass(endpoint, retryDelay.interval)
    }
    await receiver.until(4, endpoint.path)
    await stage.untilQuiet(endpoint)
    assert.equal((await stage.queueOf(endpoint)).failures, 4)
    receiver.answer({ status: 204 }, endpoint.path)
    await mail.transaction((tx) => wakeQueue(tx, project_id, endpoint.id))
    // Nothing else would have made the queue due.
    await receiver.until(5, endpoint.path)
    await stage.untilQuiet(endpoint)
    assert.equal((await stage.queueOf(endpoint)).failures, 0)
    assert.equal(await stage.waitingFor(endpoint), 0)
  })
})

describe('attempts', () => {
  test('are listed newest first, page by page, within the project', async () => {
    const endpoint = await makeEndpoint(await makeProject())
    const { project_id, id } = endpoint
    const before = await stage.now()
    await publishEvents(project_id, 25)
    await receiver.until(25, endpoint.path)
    await stage.untilQuiet(endpoint)
    const page = (beforeId?: string) =>
      mail.read((tx) => listByEndpoint(tx, project_id, id, { limit: 10, beforeId }))
    const first = await page()
    const second = await page(first.next ?? '')
    const third = await page(second.next ?? '')
    const all = [...first.rows, ...second.rows, ...third.rows]
    assert.deepEqual(
      [first.rows.length, second.rows.length, third.rows.length, third.next],
      [10, 10, 5, null],
    )
    assert.deepEqual(
      all.map((row) => row.id),
      all
        .map((row) => row.id)
        .toSorted()
        .reverse(),
    )
    const after = await stage.now()
    for (const row of all) assertDated(madeAt(row.id), 0, before, after)
    const stranger = await makeProject()
    const strange = await mail.read((tx) => listByEndpoint(tx, stranger, id, { limit: 10 }))
    assert.deepEqual(strange, { rows: [], next: null })
  })

  test('are partitioned by day, and the partitions are created and dropped with those of mail', async () => {
    const parts = async () =>
      (
        await database.query<{ name: string }>(
          `select relname as name from pg_inherits join pg_class on oid = inhrelid
            where inhparent = 'mail.delivery_attempts'::regclass order by 1`,
        )
      ).map(({ name }) => name)
    const today = `delivery_attempts_${new Date().toISOString().slice(0, 10).replaceAll('-', '')}`
    assert.ok((await parts()).includes(today))
    await database.query(
      `create table mail.delivery_attempts_20260101 partition of mail.delivery_attempts
         for values from (postern.uuid7_floor('2026-01-01Z')) to (postern.uuid7_floor('2026-01-02Z'))`,
    )
    await database.query('alter table mail.delivery_attempts_20260101 owner to postern_owner')
    assert.equal((await mail.transaction((tx) => keepPartitions(tx, 30))).dropped, 1)
    assert.ok(!(await parts()).includes('delivery_attempts_20260101'))
  })
})

test('no worker logged an error', () => {
  assert.deepEqual(stage.errors, [])
})
