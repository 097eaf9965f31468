import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createTransport } from 'nodemailer'
import { patienceMs } from '../harness/waiting.ts'
import { Sink } from './sink.ts'

const sink = await Sink.open()

const send = (to: string, { timeoutMs = patienceMs } = {}) =>
  createTransport({ host: '127.0.0.1', port: sink.port, socketTimeout: timeoutMs }).sendMail({
    from: 'ada@example.org',
    to,
    subject: 'Hello',
    text: 'Hello',
  })

describe('a sink', () => {
  it('accepts mail for any recipient', async () => {
    const { response } = await send('anna@example.net')
    assert.equal(response, '250 2.0.0 Kept')
    const { from, to, raw } = await sink.next(() => true)
    assert.deepEqual([from, to], ['ada@example.org', ['anna@example.net']])
    assert.match(raw.toString(), /^From: ada@example\.org\r\nTo: anna@example\.net\r\n/)
  })

  it('returns each delivery once, including earlier ones', async () => {
    await send('twice@example.net')
    await send('twice@example.net')
    const first = await sink.next(({ to }) => to[0] === 'twice@example.net')
    const second = await sink.next(({ to }) => to[0] === 'twice@example.net')
    assert.notEqual(first, second)
    await assert.rejects(
      sink.next(({ to }) => to[0] === 'twice@example.net', 50),
      /no matching delivery within 50 ms/,
    )
  })

  it('rejects a recipient with the specified reply, the specified number of times', async () => {
    sink.treat('Busy@example.net', { at: 'rcpt', answer: '451 4.2.1 Come back later', times: 2 })
    for (let n = 0; n < 2; n++) {
      await assert.rejects(send('busy@example.net'), { responseCode: 451, code: 'EENVELOPE' })
    }
    await send('busy@example.net')
    assert.deepEqual(
      sink.refused.map(({ to, answer }) => [to, answer]),
      Array(2).fill(['busy@example.net', '451 4.2.1 Come back later']),
    )
  })

  it('rejects a message after DATA', async () => {
    sink.treat('strict@example.net', { at: 'data', answer: '554 5.7.1 Looks like spam' })
    await assert.rejects(send('strict@example.net'), {
      response: '554 5.7.1 Looks like spam',
      code: 'EMESSAGE',
    })
    assert.equal(sink.received.filter(({ to }) => to.includes('strict@example.net')).length, 0)
  })

  it('closes the connection', async () => {
    sink.treat('moody@example.net', { at: 'data', answer: 'close' })
    await assert.rejects(send('moody@example.net'), /closed/i)
  })

  it('does not reply', async () => {
    sink.treat('silent@example.net', { at: 'rcpt', answer: 'hang' })
    await assert.rejects(send('silent@example.net', { timeoutMs: 300 }), { code: 'ETIMEDOUT' })
  })
})
