import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { fanOutAll } from '../../../testing/harness/fan-out.ts'
import { blockedBy } from '../../../testing/harness/lock-queue.ts'
import { assertDated, webhookHarness } from '../../../testing/harness/webhook-harness.ts'
import { writeEvents } from '../messages/events.ts'
import { writeDeliveryResults } from './delivery-results.ts'
import { EndpointQueues } from './endpoint-queues.ts'

/** Tests the queues without a dispatcher: leases and wake-ups. */
const database = await testDatabase()
const stage = await webhookHarness(database)
const { mail, receiver, makeProject, makeEndpoint, publishEvents } = stage
const queues = new EndpointQueues(mail)

const upTo = (most: number) => ({ healthy: { most, notOf: [] }, failing: { most, notOf: [] } })

async function claim() {
  await queues.wake()
  return queues.claim(upTo(100))
}

async function claimOf({ id }: { id: number }) {
  return (await claim()).find(({ endpoint_id }) => endpoint_id === id) ?? assert.fail(`${id} is not due`)
}

const release = (queue: Awaited<ReturnType<typeof claim>>[number], backoffMs = 0) => ({
  ...{ queue, results: [], hasSucceeded: false },
  release: { hasFailed: backoffMs > 0, isGone: false, backoffMs },
})

describe('a lease', () => {
  test('is granted to one of many concurrent claims', async () => {
    for (let no = 0; no < 20; no++) {
      const endpoint = await makeEndpoint(await makeProject())
      await publishEvents(endpoint.project_id)
    }
    await queues.wake()
    const claims = (await Promise.all(Array.from({ length: 8 }, () => queues.claim(upTo(10))))).flat()
    assert.equal(claims.length, 20)
    assert.equal(new Set(claims.map(({ endpoint_id }) => endpoint_id)).size, 20)
    assert.deepEqual(await claim(), [])
    await mail.transaction((tx) =>
      writeDeliveryResults(
        tx,
        claims.map((queue) => release(queue, 3_600_000)),
      ),
    )
  })

  test('that has expired passes to another worker, and the first worker writes nothing', async () => {
    const endpoint = await makeEndpoint(await makeProject())
    const [id = ''] = await publishEvents(endpoint.project_id)
    const first = await claimOf(endpoint)
    assert.deepEqual(await claim(), [])
    await stage.pass(endpoint, '61 seconds')
    const second = await claimOf(endpoint)
    assert.equal(second.lease, first.lease + 1)
    const result = {
      ...{
        event_id: id,
        event_type: 'message.delivered',
        attempt: 1,
        outcome: 'delivered' as const,
        status: 200,
      },
      ...{ latencyMs: 1, response: '', error: null, retryMs: null, startedAt: 0 },
    }
    await mail.transaction((tx) =>
      writeDeliveryResults(tx, [{ queue: first, results: [result], hasSucceeded: true }]),
    )
    assert.equal(await stage.waitingFor(endpoint), 1)
    assert.deepEqual(await stage.attemptsOf(endpoint), [])
    await mail.transaction((tx) =>
      writeDeliveryResults(tx, [{ queue: second, results: [result], hasSucceeded: true }]),
    )
    assert.equal(await stage.waitingFor(endpoint), 0)
    await mail.transaction((tx) => writeDeliveryResults(tx, [release(second)]))
    assert.ok((await stage.queueOf(endpoint)).is_idle)
  })
})

describe('a wake', () => {
  test('during the release of the queue is not lost', async () => {
    const endpoint = await makeEndpoint(await makeProject())
    await publishEvents(endpoint.project_id)
    const queue = await claimOf(endpoint)
    await database.query('delete from mail.deliveries where endpoint_id = $1', [endpoint.id])
    // The event commits and its wake is taken after the release has begun, but before it reads the
    // deliveries.
    const other = openDatabase(database).as('mail')
    await mail.transaction(async (tx) => {
      // A snapshot that sees no deliveries; the release must read again.
      await tx
        .selectFrom('mail.deliveries')
        .select('event_id')
        .where('endpoint_id', '=', endpoint.id)
        .execute()
      await other.transaction((their) =>
        writeEvents(their, [
          {
            projectId: endpoint.project_id,
            type: 'message.delivered',
            messageId: null,
            recipientNo: null,
            data: {},
          },
        ]),
      )
      await fanOutAll(other, database)
      await new EndpointQueues(other).wake()
      await writeDeliveryResults(tx, [release(queue)])
    })
    assert.ok((await stage.queueOf(endpoint)).is_due, 'it is due immediately')
  })

  test('waits for the release of the queue and then makes it due', async () => {
    const endpoint = await makeEndpoint(await makeProject())
    await publishEvents(endpoint.project_id)
    const queue = await claimOf(endpoint)
    await database.query('delete from mail.deliveries where endpoint_id = $1', [endpoint.id])
    let woken: Promise<unknown> | undefined
    await mail.transaction(async (tx) => {
      await writeDeliveryResults(tx, [release(queue)])
      await publishEvents(endpoint.project_id)
      woken = new EndpointQueues(openDatabase(database).as('mail')).wake()
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
      await blockedBy(database, rows[0]?.pid ?? 0)
    })
    await woken
    assert.ok((await stage.queueOf(endpoint)).is_due, 'it is due immediately')
  })

  test("does not end a failing endpoint's backoff", async () => {
    const endpoint = await makeEndpoint(await makeProject())
    await publishEvents(endpoint.project_id)
    const queue = await claimOf(endpoint)
    const before = await stage.now()
    await mail.transaction((tx) => writeDeliveryResults(tx, [release(queue, 3_600_000)]))
    const after = await stage.now()
    await publishEvents(endpoint.project_id)
    assert.deepEqual(
      (await claim()).filter(({ endpoint_id }) => endpoint_id === endpoint.id),
      [],
    )
    assertDated((await stage.queueOf(endpoint)).due_at, 3_600_000, before, after)
  })

  test('makes a queue due before a later delivery is due', async () => {
    const endpoint = await makeEndpoint(await makeProject())
    await publishEvents(endpoint.project_id)
    const queue = await claimOf(endpoint)
    const [delivery] = await database.query<{ due_at: Date }>(
      `update mail.deliveries set due_at = postern.now() + interval '1 hour' where endpoint_id = $1 returning due_at`,
      [endpoint.id],
    )
    await mail.transaction((tx) => writeDeliveryResults(tx, [release(queue)]))
    assert.deepEqual((await stage.queueOf(endpoint)).due_at, delivery?.due_at)
    await publishEvents(endpoint.project_id)
    assert.equal((await claim()).filter(({ endpoint_id }) => endpoint_id === endpoint.id).length, 1)
  })

  test('is never lost while two workers race with event writers', async () => {
    const endpoints = []
    for (let no = 0; no < 4; no++) endpoints.push(await makeEndpoint(await makeProject()))
    const workers = [stage.startWorker(), stage.startWorker({ db: openDatabase(database).as('mail') })]
    const rounds = 60
    for (let round = 0; round < rounds; round++) {
      await Promise.all(endpoints.map(({ project_id }) => publishEvents(project_id)))
      // Varies up to about the duration of a run with one delivery, so that events coincide with every phase
      // of a run.
      await sleep((round % 12) * 3)
    }
    for (const endpoint of endpoints) {
      const got = await receiver.until(rounds, endpoint.path)
      assert.equal(new Set(got.map(({ headers }) => headers['webhook-id'])).size, rounds)
      await stage.untilQuiet(endpoint)
      assert.equal(await stage.waitingFor(endpoint), 0)
      assert.equal(
        receiver.got.filter(({ path }) => path === endpoint.path).length,
        rounds,
        'none is delivered twice',
      )
    }
    for (const worker of workers) await worker.stop()
    assert.deepEqual(stage.errors, [])
  })
})
