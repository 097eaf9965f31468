import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTransport } from 'nodemailer'
import { Postfix } from './postfix.ts'
import { type Delivery, Sink } from './sink.ts'

const sink = await Sink.open()
const feedback = await Sink.open()
const postfix = await Postfix.open({ sinkPort: sink.port, feedbackPort: feedback.port, lifetimeSeconds: 6 })
const transport = createTransport({ host: '127.0.0.1', port: postfix.port })

/** Sends a message to Postfix as the service does. `name` is the local part of all its addresses. */
const send = (name: string) =>
  transport.sendMail({
    envelope: { from: `${name}@bounces.shop.example.org`, to: `${name}@example.net` },
    dsn: {
      id: `${name}.1`,
      return: 'HDRS',
      notify: ['SUCCESS', 'FAILURE', 'DELAY'],
      recipient: `rfc822;${name}@example.net`,
    },
    raw: [
      'From: Shop <orders@shop.example.org>',
      `To: ${name}@example.net`,
      'Subject: Your order',
      `Message-ID: <${name}@shop.example.org>`,
      '',
      'It is on its way.',
      '. and a line that begins with a dot',
      '',
    ].join('\r\n'),
  })

const to = (name: string) => (delivery: Delivery) => delivery.to[0]?.startsWith(`${name}@`) === true

interface Report {
  action: string | undefined
  status: string | undefined
  diagnostic: string | undefined
}

/** The next report about the message. Asserts that it contains every identifier of the message. */
async function report(name: string): Promise<Report> {
  const delivery = await feedback.next(to(name))
  const text = delivery.raw.toString()
  const field = (header: string) => new RegExp(`^${header}: ([^\r]*)\r$`, 'm').exec(text)?.[1]
  assert.equal(delivery.from, '')
  assert.deepEqual(delivery.to, [`${name}@bounces.shop.example.org`])
  assert.equal(field('Original-Envelope-Id'), `${name}.1`)
  assert.equal(field('Original-Recipient'), `rfc822;${name}@example.net`)
  assert.equal(field('Message-ID'), `<${name}@shop.example.org>`)
  return { action: field('Action'), status: field('Status'), diagnostic: field('Diagnostic-Code') }
}

const later = { at: 'rcpt', answer: '451 4.2.1 Come back later' } as const

describe('a private Postfix', () => {
  it('relays a message to the sink and reports this', async () => {
    const { response } = await send('anna')
    assert.match(response, /^250 2\.0\.0 Ok: queued as [0-9B-Zb-z]{12,}$/)
    const { from, to: recipients, raw, ip } = await sink.next(to('anna'))
    assert.equal(from, 'anna@bounces.shop.example.org')
    assert.deepEqual(recipients, ['anna@example.net'])
    assert.equal(ip, '127.0.0.1')
    assert.match(raw.toString(), /\r\n\r\nIt is on its way\.\r\n\. and a line that begins with a dot\r\n$/)
    assert.deepEqual(await report('anna'), {
      action: 'relayed',
      status: '2.0.0',
      diagnostic: 'smtp; 250 2.0.0 Kept',
    })
  })

  it('bounces a message that is rejected at RCPT', async () => {
    sink.treat('nobody@example.net', { at: 'rcpt', answer: '550 5.1.1 No such user' })
    await send('nobody')
    assert.deepEqual(await report('nobody'), {
      action: 'failed',
      status: '5.1.1',
      diagnostic: 'smtp; 550 5.1.1 No such user',
    })
  })

  it('bounces a message that is rejected after DATA', async () => {
    sink.treat('strict@example.net', { at: 'data', answer: '554 5.7.1 Looks like spam' })
    await send('strict')
    const { action, status } = await report('strict')
    assert.deepEqual({ action, status }, { action: 'failed', status: '5.7.1' })
  })

  it('reports a delay once, retries, and reports the delivery', async () => {
    sink.treat('busy@example.net', { ...later, times: 2 })
    await send('busy')
    const { action, status } = await report('busy')
    assert.deepEqual({ action, status }, { action: 'delayed', status: '4.2.1' })
    await sink.next(to('busy'))
    assert.equal((await report('busy')).action, 'relayed')
    assert.equal(sink.refused.filter((one) => one.to === 'busy@example.net').length, 2)
    assert.equal(feedback.received.filter(to('busy')).length, 2)
  })

  it('gives up on a message that is deferred for longer than its lifetime', async () => {
    sink.treat('never@example.net', { at: 'data', answer: '451 4.3.0 Not now' })
    await send('never')
    assert.equal((await report('never')).action, 'delayed')
    const { action, status } = await report('never')
    assert.deepEqual({ action, status }, { action: 'failed', status: '4.3.0' })
    assert.equal(sink.received.filter(to('never')).length, 0)
  })

  it('retries after the peer closed the connection', async () => {
    sink.treat('moody@example.net', { at: 'data', answer: 'close', times: 1 })
    await send('moody')
    const { action, status } = await report('moody')
    assert.deepEqual({ action, status }, { action: 'delayed', status: '4.4.2' })
    await sink.next(to('moody'))
  })

  it('holds and releases queued messages', async () => {
    sink.treat('held@example.net', later)
    await send('held')
    await report('held')
    await postfix.hold()
    const queue = await postfix.queue()
    const own = queue.filter(({ sender }) => sender === 'held@bounces.shop.example.org')
    assert.deepEqual(
      own.map(({ queue_name, recipients }) => [queue_name, recipients[0]?.address]),
      [['hold', 'held@example.net']],
    )
    // An attempt in progress can still complete.
    await sleep(1000)
    sink.treat('held@example.net', { ...later, times: 0 })
    await sleep(2500)
    assert.equal(sink.received.filter(to('held')).length, 0)
    await postfix.release()
    await sink.next(to('held'))
  })

  for (const how of ['stop', 'kill'] as const) {
    it(`keeps its queue after a ${how}`, async () => {
      sink.treat(`${how}@example.net`, later)
      await send(how)
      await report(how)
      await postfix[how]()
      await assert.rejects(() => transport.verify(), { code: 'ESOCKET' })
      sink.treat(`${how}@example.net`, { ...later, times: 0 })
      await postfix.start()
      await sink.next(to(how))
    })
  }
})
