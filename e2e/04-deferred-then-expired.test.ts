import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { body, openStage } from './stage.ts'

/**
 * The recipient's server never accepts the message. Postfix normally retries for days; here the scenario expires the
 * message, so Postfix gives up and sends a report. The message has failed but not bounced, because no reply says that
 * the address is invalid, so the address is not suppressed.
 */
const stage = await openStage()

describe('a message that is never accepted', () => {
  it('is deferred, then fails, and does not suppress the address', async () => {
    stage.sink.treat('never@example.net', { at: 'rcpt', answer: '451 4.3.2 Not now' })

    const id = await stage.send({ to: ['never@example.net'] })
    await stage.settled(id, 'deferred')
    await stage.postfix.expire()
    const failed = await stage.settled(id, 'failed')
    assert.match(failed.recipients[0]?.diagnostic ?? '', /4\.3\.2/)
    assert.deepEqual((await stage.events(id)).map(({ type }) => type).sort(), [
      'message.accepted',
      'message.deferred',
      'message.failed',
      'message.sent',
    ])

    const { data } = await body<{ data: unknown[] }>(200, stage.shop.get('/suppressions'))
    assert.deepEqual(data, [])
    stage.sink.treat('never@example.net', { at: 'rcpt', answer: '451 4.3.2 Not now', times: 0 })
    await stage.settled(await stage.send({ to: ['never@example.net'] }), 'delivered')
  })
})
