import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTransport } from 'nodemailer'
import { eventually } from '../harness/waiting.ts'
import { FaultyProxy } from './faulty-proxy.ts'
import { Sink } from './sink.ts'

describe('a faulty proxy', () => {
  const send = (port: number) =>
    createTransport({ host: '127.0.0.1', port }).sendMail({
      ...{ from: 'ada@example.org', to: 'anna@example.net', text: 'Hello'.repeat(200) },
    })

  it('forwards all data with latency and limited bandwidth', async () => {
    const sink = await Sink.open()
    const proxy = await FaultyProxy.open(sink.port)
    await send(proxy.port)
    proxy.latencyMs = 20
    await send(proxy.port)
    proxy.bytesPerSecond = 10_000
    await send(proxy.port)
    assert.equal(sink.received.length, 3)
    const [first, ...others] = sink.received.map(({ raw }) => raw.length)
    assert.deepEqual(others, [first, first])
  })

  it('delays a reply by its latency', async () => {
    const sink = await Sink.open()
    const proxy = await FaultyProxy.open(sink.port)
    proxy.latencyMs = 24 * 3600_000
    const slow = connect(proxy.port, '127.0.0.1')
    let received = ''
    slow.on('data', (chunk) => {
      received += chunk
    })
    await once(slow, 'connect')
    // Meanwhile a client without the proxy can send a message.
    await send(sink.port)
    assert.equal(received, '')
    slow.destroy()
  })

  it('limits the bytes per second', async () => {
    const sink = await Sink.open()
    const proxy = await FaultyProxy.open(sink.port)
    const socket = connect(proxy.port, '127.0.0.1')
    await once(socket, 'data')
    proxy.bytesPerSecond = 1
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    socket.write(`NOOP ${'x'.repeat(300)}\r\n`)
    // Meanwhile a client without the proxy can send a message.
    await send(sink.port)
    assert.equal(received, '', 'the command takes five minutes')
    proxy.bytesPerSecond = Number.POSITIVE_INFINITY
    await eventually('the reply has arrived', () => /^250 .*\r\n/.test(received))
    socket.destroy()
  })

  it('stops and resumes forwarding', async () => {
    const sink = await Sink.open()
    const proxy = await FaultyProxy.open(sink.port)
    proxy.isSilent = true
    const socket = connect(proxy.port, '127.0.0.1')
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    await once(socket, 'connect')
    await sleep(200)
    assert.equal(received, '')
    proxy.isSilent = false
    await once(socket, 'data')
    assert.match(received, /^220 /)
    socket.destroy()
  })

  it('resets open connections and accepts new ones', async () => {
    const sink = await Sink.open()
    const proxy = await FaultyProxy.open(sink.port)
    for (let call = 0; call < 2; call++) {
      const socket = connect(proxy.port, '127.0.0.1')
      await once(socket, 'data')
      proxy.reset()
      const [error] = await once(socket, 'error')
      assert.equal(error.code, 'ECONNRESET')
    }
  })

  it('closes every socket when a reset coincides with a shutdown', async () => {
    const server = createServer({ allowHalfOpen: true }, (socket) =>
      socket
        .on('error', () => {})
        .on('end', () => socket.end())
        .resume(),
    ).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const proxy = await FaultyProxy.open((server.address() as AddressInfo).port)
    // The proxy forwards the FIN from a timer callback. Some of these resets run in the next callback of the same
    // tick.
    for (let call = 0; call < 100; call++) {
      const socket = connect(proxy.port, '127.0.0.1')
        .on('error', () => {})
        .resume()
      await once(socket, 'connect')
      socket.end('x')
      for (let pause = 0; pause < call % 10; pause++) await sleep(1)
      proxy.reset()
      await eventually('the client is disconnected', () => socket.closed)
    }
    await eventually('every connection is closed', () => proxy.connections === 0)
    server.close()
  })
})
