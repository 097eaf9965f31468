import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { body, openStage } from './stage.ts'

/**
 * The other end never takes the mail. Postfix, which tries for days, here until the scenario expires the mail, gives up and
 * reports that: the mail has failed. It has not bounced, because no reply says that the address is wrong, so the address
 * is not suppressed.
 */
const stage = await openStage()

describe('a mail that is never taken', () => {
  it('is deferred, then fails, and suppresses nobody', async () => {
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
