import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTransport } from 'nodemailer'
import { BadLine } from './bad-line.ts'
import { Sink } from './sink.ts'

describe('a bad line', () => {
  it('carries everything, as slowly as it says', async () => {
    const sink = await Sink.open()
    const line = await BadLine.open(sink.port)
    const send = async () => {
      const before = performance.now()
      const transport = createTransport({ host: '127.0.0.1', port: line.port })
      await transport.sendMail({ from: 'ada@example.org', to: 'anna@example.net', text: 'Hello'.repeat(200) })
      return performance.now() - before
    }
    line.latencyMs = 200
    // Greeting, EHLO, the envelope and the end of the data have an answer each, at least.
    assert.ok((await send()) >= 4 * 200)
    line.latencyMs = 0
    assert.ok((await send()) < 4 * 200)
    line.bytesPerSecond = 1000
    assert.ok((await send()) >= 1000)
    assert.equal(sink.received.length, 3)
    const [first, ...others] = sink.received.map(({ raw }) => raw.length)
    assert.deepEqual(others, [first, first])
  })

  it('falls silent, and is heard again', async () => {
    const sink = await Sink.open()
    const line = await BadLine.open(sink.port)
    line.isSilent = true
    const socket = connect(line.port, '127.0.0.1')
    let heard = ''
    socket.on('data', (chunk) => {
      heard += chunk
    })
    await once(socket, 'connect')
    await sleep(200)
    assert.equal(heard, '')
    line.isSilent = false
    await once(socket, 'data')
    assert.match(heard, /^220 /)
    socket.destroy()
  })

  it('throws out whoever is on it, and lets in who calls again', async () => {
    const sink = await Sink.open()
    const line = await BadLine.open(sink.port)
    for (let call = 0; call < 2; call++) {
      const socket = connect(line.port, '127.0.0.1')
      await once(socket, 'data')
      line.reset()
      const [error] = await once(socket, 'error')
      assert.equal(error.code, 'ECONNRESET')
    }
  })
})
