import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { testDatabase } from '../testing/harness/database.ts'
import { eventually } from '../testing/harness/waiting.ts'
import { assertDated, retryDelay, webhookHarness } from '../testing/harness/webhook-harness.ts'

/** What becomes of an endpoint that is switched off, is to be, or is no more; and what control hears of it. */
const database = await testDatabase()
const stage = await webhookHarness(database)
const { receiver, makeProject, makeEndpoint, publishEvents } = stage
stage.startWorker()

describe('an endpoint', () => {
  test('that responds 410 is disabled, and its deliveries are kept', async () => {
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

  test('that fails for five days is disabled, and not before', async () => {
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
    assert.deepEqual(await disabled(), [], 'in which it was asked three times')
    await database.query('update mail.endpoint_queues set failures = 11 where endpoint_id = $1', [
      endpoint.id,
    ])
    await stage.pass(endpoint, '11 hours')
    await receiver.until(4, endpoint.path)
    await stage.untilQuiet(endpoint)
    assert.equal((await disabled())[0]?.payload['reason'], 'All deliveries failed for 5 days.')
  })

  test('that is inactive gets nothing, and its deliveries are given up in the end', async () => {
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

  test('is published to control when its health changes, and otherwise once a minute at most', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    const told = async () =>
      (await stage.outboxOf(endpoint)).filter(({ topic }) => topic === 'endpoint.stats_changed').length
    /** Control was told just now, or so much later. One event takes less than the minute that follows. */
    const setTold = (later = '0 seconds') =>
      database.query(
        'update mail.endpoint_queues set published_at = postern.now() + $2::interval where endpoint_id = $1',
        [endpoint.id, later],
      )
    const toldAfterEvent = async (status: number) => {
      receiver.answer({ status }, endpoint.path)
      await publishEvents(projectId)
      await stage.untilQuiet(endpoint)
      return told()
    }
    assert.equal(await toldAfterEvent(204), 1, 'its first success')
    for (let event = 0; event < 2; event++) {
      await setTold()
      assert.equal(await toldAfterEvent(204), 1, 'and no more')
    }
    assert.equal(await toldAfterEvent(500), 2, 'a streak begins')
    await setTold(retryDelay.interval)
    await stage.pass(endpoint, retryDelay.interval)
    await stage.untilQuiet(endpoint)
    assert.equal(await told(), 2, 'and goes on')
    receiver.answer({ status: 204 }, endpoint.path)
    await stage.pass(endpoint, retryDelay.interval)
    await stage.untilQuiet(endpoint)
    assert.equal(await told(), 3, 'and ends')
    await stage.pass(endpoint, '61 seconds')
    assert.equal(await toldAfterEvent(204), 4, 'a minute later')
    await setTold()
    assert.equal(await toldAfterEvent(204), 4, 'and once')
  })
})

test('no worker logged an error', () => {
  assert.deepEqual(stage.errors, [])
})
