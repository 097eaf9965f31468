import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openStage } from './stage.ts'

/**
 * The recipient's server is busy and returns a temporary failure. Postfix queues the message, reports the delay,
 * retries and finally delivers it. The shop can see both events.
 */
const stage = await openStage()

describe('a message that is deferred', () => {
  it('is reported as deferred, and is delivered by a retry', async () => {
    stage.sink.treat('busy@example.net', { at: 'rcpt', answer: '451 4.2.1 Come back later' })

    const id = await stage.send({ to: ['busy@example.net'] })
    const deferred = await stage.settled(id, 'deferred')
    assert.match(deferred.recipients[0]?.diagnostic ?? '', /4\.2\.1/)
    await stage.eventually('Postfix has tried three times', () => stage.sink.refused.length >= 3)

    stage.sink.treat('busy@example.net', { at: 'rcpt', answer: '451 4.2.1 Come back later', times: 0 })
    await stage.settled(id, 'delivered')
    assert.deepEqual((await stage.events(id)).map(({ type }) => type).sort(), [
      'message.accepted',
      'message.deferred',
      'message.delivered',
      'message.sent',
    ])
    assert.equal(stage.received(id).length, 1)
  })
})
