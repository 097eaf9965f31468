import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openStage } from './stage.ts'

/**
 * A shop sends an order confirmation. The API accepts it, the worker hands it to Postfix, Postfix delivers it and
 * reports so to the intake; the shop reads what became of it. Every recipient has an envelope of their own, whose
 * return path tells which recipient of which message a report is about.
 */
const stage = await openStage()

describe('a mail', () => {
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

  it('goes to each of its recipients alone, and hides those of whom nobody is to know', async () => {
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
    // In her own copy Postfix writes for whom it is.
    const others = deliveries.filter(({ to }) => !to.includes('dora@example.org'))
    for (const { raw } of others) assert.ok(!raw.includes('dora'))
  })
})
