import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openStage } from './stage.ts'

/**
 * The other end is busy and asks to come back later. Postfix keeps the mail, reports the delay, tries again and
 * delivers in the end; the shop sees both.
 */
const stage = await openStage()

describe('a mail that is not taken at once', () => {
  it('is deferred, is told to be, and is delivered when its time has come', async () => {
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
