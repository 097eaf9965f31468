import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testDatabase } from '../testing/database.ts'
import { webhookStage } from '../testing/webhooks.ts'

/** What becomes of an endpoint that is switched off, is to be, or is no more; and what control hears of it. */
const database = await testDatabase()
const stage = await webhookStage(database)
const { receiver, makeProject, makeEndpoint, tell } = stage
stage.startWorker()

describe('an endpoint', () => {
  test('that says 410 is to be switched off, and what waits for it is kept', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    receiver.answer({ status: 410 }, endpoint.path)
    await tell(projectId, 15)
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

  test('that took nothing for five days is to be switched off, and not before', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    receiver.answer({ status: 503 }, endpoint.path)
    const disabled = async () =>
      (await stage.outboxOf(endpoint)).filter(({ topic }) => topic === 'endpoint.disabled')
    await tell(projectId)
    await receiver.until(1, endpoint.path)
    await stage.untilQuiet(endpoint)
    await stage.pass(endpoint, '4 days 23 hours')
    await tell(projectId)
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
    assert.equal((await disabled())[0]?.payload['reason'], 'It took nothing for 5 days.')
  })

  test('that is switched off gets nothing, and what waits is given up in the end', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    receiver.answer({ status: 500 }, endpoint.path)
    await tell(projectId, 3)
    await receiver.until(1, endpoint.path)
    await stage.untilQuiet(endpoint)
    await database.query('update control.endpoints set is_active = false where id = $1', [endpoint.id])
    await stage.pass(endpoint, '6 seconds')
    await stage.untilQuiet(endpoint)
    assert.equal((await receiver.until(1, endpoint.path)).length, 1)
    assert.equal(await stage.waitingFor(endpoint), 3)
    const { due_in_s } = await stage.queueOf(endpoint)
    assert.ok((due_in_s ?? 0) > 3_500 && (due_in_s ?? 0) <= 3_600, `looked at again in ${due_in_s} s`)
  })

  test('that is no more leaves nothing behind', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    receiver.answer({ status: 500 }, endpoint.path)
    await tell(projectId, 3)
    await receiver.until(1, endpoint.path)
    await stage.untilQuiet(endpoint)
    await database.query('delete from control.endpoints where id = $1', [endpoint.id])
    await stage.pass(endpoint, '6 seconds')
    for (let tries = 0; (await stage.waitingFor(endpoint)) > 0 && tries < 500; tries++) await sleep(20)
    await sleep(200)
    assert.equal(await stage.waitingFor(endpoint), 0)
    assert.deepEqual(
      await database.query('select from mail.endpoint_queues where endpoint_id = $1', [endpoint.id]),
      [],
    )
    assert.equal((await receiver.until(1, endpoint.path)).length, 1)
  })

  test('is told of to control when its standing changes, and once a minute at most otherwise', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    const told = async () =>
      (await stage.outboxOf(endpoint)).filter(({ topic }) => topic === 'endpoint.told').length
    const count = async (status: number, events: number) => {
      receiver.answer({ status }, endpoint.path)
      for (let event = 0; event < events; event++) {
        await tell(projectId)
        await stage.untilQuiet(endpoint)
      }
      return told()
    }
    assert.equal(await count(204, 3), 1, 'its first success, and no more')
    assert.equal(await count(500, 1), 2, 'a streak begins')
    await stage.pass(endpoint, '6 seconds')
    await stage.untilQuiet(endpoint)
    assert.equal(await told(), 2, 'and goes on')
    receiver.answer({ status: 204 }, endpoint.path)
    await stage.pass(endpoint, '40 seconds')
    await stage.untilQuiet(endpoint)
    assert.equal(await told(), 3, 'and ends')
    await stage.pass(endpoint, '61 seconds')
    assert.equal(await count(204, 2), 4, 'a minute later')
  })
})

test('nothing went wrong behind the scenes', () => {
  assert.deepEqual(stage.troubles, [])
})
