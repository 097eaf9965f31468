import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openStage } from './stage.ts'

/**
 * A shop sends an order confirmation. The API accepts it, the worker hands it to Postfix, Postfix delivers it and sends
 * a report to the intake, and the shop reads the status. Every recipient has a separate envelope, whose return path
 * identifies the message and the recipient when a report arrives.
 */
const stage = await openStage()

describe('a message', () => {
  it('is accepted, sent and delivered', async () => {
    const answer = await stage.shop.post('/messages', {
      from: 'Shop <orders@shop.example.org>',
      to: ['Anna <anna@example.net>'],
      subject: 'Your order',
      text: 'It is on its way.',
    })
    assert.equal(answer.status, 202)
    assert.deepEqual(Object.keys(answer.body), ['id', 'status', 'created_at'])
    const { id } = answer.body

    const delivery = await stage.sink.next(({ to }) => to[0] === 'anna@example.net')
    assert.match(delivery.from, /^[^@]{1,64}@bounces\.shop\.example\.org$/)
    assert.match(delivery.raw.toString(), /^Subject: Your order\r$/m)
    assert.match(delivery.raw.toString(), /\r\n\r\nIt is on its way\.\r\n$/)

    const message = await stage.settled(id, 'delivered')
    assert.equal(message.status, 'delivered')
    assert.deepEqual(
      message.recipients.map(({ address, kind }) => [address, kind]),
      [['anna@example.net', 'to']],
    )
    const events = await stage.events(id)
    assert.deepEqual(events.map(({ type }) => type).sort(), [
      'message.accepted',
      'message.delivered',
      'message.sent',
    ])
    assert.equal(stage.received(id).length, 1)
  })

  it('is sent to each recipient separately, without revealing Bcc recipients', async () => {
    const id = await stage.send({
      to: ['bea@example.net'],
      cc: ['carl@example.com'],
      bcc: ['dora@example.org'],
    })
    await stage.settled(id, 'delivered')
    const deliveries = stage.received(id)
    assert.deepEqual(deliveries.map(({ to }) => to).sort(), [
      ['bea@example.net'],
      ['carl@example.com'],
      ['dora@example.org'],
    ])
    assert.equal(new Set(deliveries.map(({ from }) => from)).size, 3)
    // Postfix adds the recipient's own address to each copy.
    const others = deliveries.filter(({ to }) => !to.includes('dora@example.org'))
    for (const { raw } of others) assert.ok(!raw.includes('dora'))
  })
})
