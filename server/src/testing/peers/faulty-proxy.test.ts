import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTransport } from 'nodemailer'
import { eventually } from '../harness/waiting.ts'
import { FaultyProxy } from './faulty-proxy.ts'
import { Sink } from './sink.ts'

describe('a bad line', () => {
  const send = (port: number) =>
    createTransport({ host: '127.0.0.1', port }).sendMail({
      ...{ from: 'ada@example.org', to: 'anna@example.net', text: 'Hello'.repeat(200) },
    })

  it('carries everything, however slow it is', async () => {
    const sink = await Sink.open()
    const line = await FaultyProxy.open(sink.port)
    await send(line.port)
    line.latencyMs = 20
    await send(line.port)
    line.bytesPerSecond = 10_000
    await send(line.port)
    assert.equal(sink.received.length, 3)
    const [first, ...others] = sink.received.map(({ raw }) => raw.length)
    assert.deepEqual(others, [first, first])
  })

  it('keeps an answer back for as long as its latency is', async () => {
    const sink = await Sink.open()
    const line = await FaultyProxy.open(sink.port)
    line.latencyMs = 24 * 3600_000
    const slow = connect(line.port, '127.0.0.1')
    let heard = ''
    slow.on('data', (chunk) => {
      heard += chunk
    })
    await once(slow, 'connect')
    // Another caller, on no line, is through with a mail meanwhile.
    await send(sink.port)
    assert.equal(heard, '')
    slow.destroy()
  })

  it('passes on as many bytes a second as it says', async () => {
    const sink = await Sink.open()
    const line = await FaultyProxy.open(sink.port)
    const socket = connect(line.port, '127.0.0.1')
    await once(socket, 'data')
    line.bytesPerSecond = 1
    let heard = ''
    socket.on('data', (chunk) => {
      heard += chunk
    })
    socket.write(`NOOP ${'x'.repeat(300)}\r\n`)
    // Another caller, on no line, is through with a mail meanwhile.
    await send(sink.port)
    assert.equal(heard, '', 'the command takes five minutes')
    line.bytesPerSecond = Number.POSITIVE_INFINITY
    await eventually('the answer is there', () => /^250 .*\r\n/.test(heard))
    socket.destroy()
  })

  it('falls silent, and is heard again', async () => {
    const sink = await Sink.open()
    const line = await FaultyProxy.open(sink.port)
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
    const line = await FaultyProxy.open(sink.port)
    for (let call = 0; call < 2; call++) {
      const socket = connect(line.port, '127.0.0.1')
      await once(socket, 'data')
      line.reset()
      const [error] = await once(socket, 'error')
      assert.equal(error.code, 'ECONNRESET')
    }
  })

  it('closes every socket when a reset meets a shutdown', async () => {
    const server = createServer({ allowHalfOpen: true }, (socket) =>
      socket
        .on('error', () => {})
        .on('end', () => socket.end())
        .resume(),
    ).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const line = await FaultyProxy.open((server.address() as AddressInfo).port)
    // The line forwards the FIN from a timer callback. Some of these resets run in the next callback of the same tick.
    for (let call = 0; call < 100; call++) {
      const socket = connect(line.port, '127.0.0.1')
        .on('error', () => {})
        .resume()
      await once(socket, 'connect')
      socket.end('x')
      for (let pause = 0; pause < call % 10; pause++) await sleep(1)
      line.reset()
      await eventually('the caller is out', () => socket.closed)
    }
    await eventually('every connection is closed', () => line.connections === 0)
    server.close()
  })
})
