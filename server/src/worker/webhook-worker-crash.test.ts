import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testDatabase } from '../testing/harness/database.ts'
import { bareEnvironment, startPostern } from '../testing/harness/postern-process.ts'
import { eventually } from '../testing/harness/waiting.ts'
import { webhookHarness } from '../testing/harness/webhook-harness.ts'

/** A worker in a separate process that is killed while requests are in flight. */
const database = await testDatabase()
const stage = await webhookHarness(database)
const { receiver, makeProject, makeEndpoint, publishEvents } = stage
const env = {
  ...bareEnvironment,
  POSTERN_DATABASE_URL: database.url,
  POSTERN_PUBLIC_URL: 'http://localhost:8080',
  POSTERN_AUTH_SECRETS: `1:${'test-secret-'.repeat(4)}`,
  POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
  ...receiver.settings,
}
const startWorker = () => startPostern('worker', env, ['working'])

test('after a worker crashes and its lease expires, all events arrive', async () => {
  const endpoint = await makeEndpoint(await makeProject())
  const first = await startWorker()
  // Makes the endpoint healthy, so ten requests are in flight concurrently.
  await publishEvents(endpoint.project_id)
  await receiver.until(1, endpoint.path)
  await stage.untilQuiet(endpoint)
  receiver.answer('hang', endpoint.path)
  const ids = await publishEvents(endpoint.project_id, 40)
  await receiver.until(11, endpoint.path)
  first.kill()
  await first.exited
  const { is_leased, lease } = await stage.queueOf(endpoint)
  assert.ok(is_leased)
  // Extends the lease, so it cannot expire while the second worker is starting.
  await stage.pass(endpoint, '-1 hour')

  receiver.answer({ status: 204 }, endpoint.path)
  const second = await startWorker()
  await sleep(1_000)
  assert.equal(
    (await receiver.until(11, endpoint.path)).length,
    11,
    'nothing is sent before the lease expires',
  )
  await stage.pass(endpoint, '1 hour 61 seconds')
  const got = await receiver.until(51, endpoint.path)
  await stage.untilQuiet(endpoint)
  await second.stop()

  const times = new Map<string, number>()
  for (const { headers } of got) {
    const id = String(headers['webhook-id'])
    times.set(id, (times.get(id) ?? 0) + 1)
  }
  assert.ok(
    ids.every((id) => times.has(id)),
    'nothing is lost',
  )
  const twice = ids.filter((id) => times.get(id) === 2)
  assert.equal(twice.length, 10, 'only requests in flight are sent twice')
  assert.equal(await stage.waitingFor(endpoint), 0)
  assert.ok((await stage.queueOf(endpoint)).lease > lease, 'under leases of the second worker')
  assert.equal((await stage.attemptsOf(endpoint)).length, 41)
})

test('a worker that is stopped finishes its requests and releases its queues', async () => {
  const endpoint = await makeEndpoint(await makeProject())
  const released = Promise.withResolvers<void>()
  receiver.answer({ status: 204, after: released.promise }, endpoint.path)
  const worker = await startWorker()
  await publishEvents(endpoint.project_id, 5)
  await receiver.until(1, endpoint.path)
  const stopped = worker.stop()
  await eventually('the worker stops', () => worker.lines.some((line) => line.includes('"msg":"stopping"')))
  released.resolve()
  await stopped
  const { is_leased } = await stage.queueOf(endpoint)
  assert.ok(!is_leased)
  const sent = receiver.got.filter(({ path }) => path === endpoint.path).length
  assert.equal(sent, 1, 'the worker starts no further request')
  assert.equal((await stage.attemptsOf(endpoint)).length, sent)
  assert.equal(await stage.waitingFor(endpoint), 5 - sent)
})
