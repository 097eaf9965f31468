import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createTransport } from 'nodemailer'
import { Sink } from './sink.ts'
import { openSlowLine } from './slow-line.ts'

describe('a slow line', () => {
  it('carries everything, as slowly as it says', async () => {
    const sink = await Sink.open()
    const line = await openSlowLine(sink.port, 200)
    const send = async () => {
      const before = performance.now()
      const transport = createTransport({ host: '127.0.0.1', port: line.port })
      await transport.sendMail({ from: 'ada@example.org', to: 'anna@example.net', text: 'Hello' })
      return performance.now() - before
    }
    // Greeting, EHLO, the envelope and the end of the data have an answer each, at least.
    assert.ok((await send()) >= 4 * 200)
    line.latencyMs = 0
    assert.ok((await send()) < 4 * 200)
    assert.equal(sink.received.length, 2)
  })
})
