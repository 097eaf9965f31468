import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { testDatabase } from '../testing/harness/database.ts'
import { eventually } from '../testing/harness/waiting.ts'
import { assertDated, retryDelay, webhookHarness } from '../testing/harness/webhook-harness.ts'

/** Disabled, failing and deleted endpoints, and the messages that report them to the control side. */
const database = await testDatabase()
const stage = await webhookHarness(database)
const { receiver, makeProject, makeEndpoint, publishEvents } = stage
stage.startWorker()

describe('an endpoint', () => {
  test('that responds with 410 is disabled, and its deliveries are retained', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    receiver.answer({ status: 410 }, endpoint.path)
    await publishEvents(projectId, 15)
    await receiver.until(1, endpoint.path)
    await stage.untilQuiet(endpoint)
    assert.equal(await stage.waitingFor(endpoint), 14)
    assert.deepEqual(
      (await stage.attemptsOf(endpoint)).map(({ outcome }) => outcome),
      ['gone'],
    )
    const disabled = (await stage.outboxOf(endpoint)).filter(({ topic }) => topic === 'endpoint.disabled')
    assert.equal(disabled.length, 1)
    assert.match(String(disabled[0]?.payload['reason']), /410/)
  })

  test('that fails is disabled after five days, not earlier', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    receiver.answer({ status: 503 }, endpoint.path)
    const disabled = async () =>
      (await stage.outboxOf(endpoint)).filter(({ topic }) => topic === 'endpoint.disabled')
    await publishEvents(projectId)
    await receiver.until(1, endpoint.path)
    await stage.untilQuiet(endpoint)
    await stage.pass(endpoint, '4 days 23 hours')
    await publishEvents(projectId)
    await receiver.until(2, endpoint.path)
    await stage.untilQuiet(endpoint)
    assert.deepEqual(await disabled(), [])
    await stage.pass(endpoint, '1 hour')
    await receiver.until(3, endpoint.path)
    await stage.untilQuiet(endpoint)
    assert.deepEqual(await disabled(), [], 'not disabled after three attempts')
    await database.query('update mail.endpoint_queues set failures = 11 where endpoint_id = $1', [
      endpoint.id,
    ])
    await stage.pass(endpoint, '11 hours')
    await receiver.until(4, endpoint.path)
    await stage.untilQuiet(endpoint)
    assert.equal((await disabled())[0]?.payload['reason'], 'All deliveries failed for 5 days.')
  })

  test('that is inactive receives nothing, and its deliveries are eventually given up', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    receiver.answer({ status: 500 }, endpoint.path)
    await publishEvents(projectId, 3)
    await receiver.until(1, endpoint.path)
    await stage.untilQuiet(endpoint)
    await database.query('update control.endpoints set is_active = false where id = $1', [endpoint.id])
    const before = await stage.now()
    await stage.pass(endpoint, retryDelay.interval)
    await stage.untilQuiet(endpoint)
    assert.equal((await receiver.until(1, endpoint.path)).length, 1)
    assert.equal(await stage.waitingFor(endpoint), 3)
    assertDated((await stage.queueOf(endpoint)).due_at, 3_600_000, before, await stage.now())
  })

  test('that was deleted leaves no rows', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    receiver.answer({ status: 500 }, endpoint.path)
    await publishEvents(projectId, 3)
    await receiver.until(1, endpoint.path)
    await stage.untilQuiet(endpoint)
    await database.query('delete from control.endpoints where id = $1', [endpoint.id])
    await stage.pass(endpoint, retryDelay.interval)
    const queues = () =>
      database.query('select from mail.endpoint_queues where endpoint_id = $1', [endpoint.id])
    await eventually('its queue is deleted', async () => (await queues()).length === 0)
    assert.equal(await stage.waitingFor(endpoint), 0)
    assert.equal((await receiver.until(1, endpoint.path)).length, 1)
  })

  test('is published to control when its health changes, and otherwise at most once per minute', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    const published = async () =>
      (await stage.outboxOf(endpoint)).filter(({ topic }) => topic === 'endpoint.stats_changed').length
    /**
     * Sets the time of the last publication to now, plus `later`. Processing one event takes less than a
     * minute.
     */
    const setPublishedAt = (later = '0 seconds') =>
      database.query(
        'update mail.endpoint_queues set published_at = postern.now() + $2::interval where endpoint_id = $1',
        [endpoint.id, later],
      )
    const publishedAfterEvent = async (status: number) => {
      receiver.answer({ status }, endpoint.path)
      await publishEvents(projectId)
      await stage.untilQuiet(endpoint)
      return published()
    }
    assert.equal(await publishedAfterEvent(204), 1, 'first success')
    for (let event = 0; event < 2; event++) {
      await setPublishedAt()
      assert.equal(await publishedAfterEvent(204), 1, 'not published again')
    }
    assert.equal(await publishedAfterEvent(500), 2, 'a streak of failures begins')
    await setPublishedAt(retryDelay.interval)
    await stage.pass(endpoint, retryDelay.interval)
    await stage.untilQuiet(endpoint)
    assert.equal(await published(), 2, 'the streak continues')
    receiver.answer({ status: 204 }, endpoint.path)
    await stage.pass(endpoint, retryDelay.interval)
    await stage.untilQuiet(endpoint)
    assert.equal(await published(), 3, 'the streak ends')
    await stage.pass(endpoint, '61 seconds')
    assert.equal(await publishedAfterEvent(204), 4, 'a minute later')
    await setPublishedAt()
    assert.equal(await publishedAfterEvent(204), 4, 'only once')
  })
})

test('no worker logged an error', () => {
  assert.deepEqual(stage.errors, [])
})
