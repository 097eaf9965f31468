import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createLogger } from '../../platform/telemetry/log.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { eventually, patienceMs } from '../../testing/harness/waiting.ts'
import { makeCertificate } from '../../testing/peers/certificate.ts'
import { SmtpClient } from '../../testing/peers/smtp-client.ts'
import { ConnectionLimit } from './connection-limit.ts'
import { listen } from './listener.ts'
import { StrictSmtpServer } from './strict-server.ts'

/** Whoever connects and then says nothing, or little. */
const { cert, key } = makeCertificate()
setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')
/** A limit that a test waits for, and one that is over only after the test has failed. */
const [shortMs, neverMs] = [600, 10 * patienceMs]

interface Limits {
  secure: boolean
  most?: number
  handshakeMs?: number
  slowMs?: number
}

async function open({ secure, most = 50, handshakeMs = neverMs, slowMs = neverMs }: Limits) {
  const crowd = new ConnectionLimit(most)
  const server = new StrictSmtpServer({
    listener: 'inbound',
    ...{ cert, key, secure, crowd, handshakeMs, slowMs },
    ...{
      lifetimeMs: neverMs,
      socketTimeout: neverMs,
      maxErrors: 10,
      authOptional: true,
      disableReverseLookup: true,
    },
    onData: (stream, _session, callback) => void stream.resume().once('end', () => callback(null, 'Taken')),
  })
  const listener = await listen(server, { host: '127.0.0.1', port: 0, log: createLogger('silent') })
  cleanUp(() => listener.stop(100))
  return { ...listener, server, inside: () => crowd.insideOf('127.0.0.1') }
}

async function silent(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  cleanUp(async () => void socket.destroy())
  await once(socket, 'connect')
  return socket.resume()
}

const becomes = (wanted: number, count: () => number): Promise<boolean> =>
  eventually(`${wanted} are inside`, () => count() === wanted)

describe('before the handshake', () => {
  test('everybody counts', async () => {
    const { port, inside } = await open({ secure: true, most: 3 })
    const sockets = [await silent(port), await silent(port), await silent(port)]
    await becomes(3, inside)
    await assert.rejects(SmtpClient.openTls(port), 'a fourth was let in')
    for (const socket of sockets) socket.destroy()
    await becomes(0, inside)
    const client = await SmtpClient.openTls(port)
    await becomes(1, inside)
    client.close()
    await becomes(0, inside)
  })

  test('nobody has longer than the limit, whether idle or not', async () => {
    const { port, inside } = await open({ secure: true, handshakeMs: shortMs })
    const sockets = [await silent(port), await silent(port), await silent(port)]
    // The first octets of a handshake, one by one: it is not idle.
    const drip = setInterval(() => sockets[0]?.write('\x16'), 50)
    await eventually('all are cut off', () => sockets.every(({ closed }) => closed))
    clearInterval(drip)
    await becomes(0, inside)
  })

  test('a client that has completed it stays', async () => {
    // A handshake takes some hundredths of a second.
    const handshakeMs = 3000
    const { port } = await open({ secure: true, handshakeMs })
    const client = await SmtpClient.openTls(port)
    await sleep(handshakeMs + 200)
    assert.match((await client.say('NOOP')) ?? '', /^250/)
    client.close()
  })

  test('in the clear, who is one too many is told so', async () => {
    const { port, inside } = await open({ secure: false, most: 1 })
    await silent(port)
    await becomes(1, inside)
    const late = connect(port, '127.0.0.1')
    assert.match(String(await once(late, 'data')), /^421 4\.7\.0 Too many connections\r\n/)
    await once(late, 'close')
  })

  test('after STARTTLS nobody has longer either', async () => {
    const { port, inside } = await open({ secure: false, handshakeMs: shortMs })
    const client = await SmtpClient.open(port)
    await client.say('EHLO client.example')
    assert.match((await client.say('STARTTLS')) ?? '', /^220/)
    await eventually('the client is cut off', () => client.isOver)
    assert.equal(await client.reply(), undefined)
    await becomes(0, inside)
  })
})

describe('after STARTTLS', () => {
  test('a connection that ended is forgotten', async () => {
    const { port, server, inside } = await open({ secure: false })
    const client = await SmtpClient.open(port)
    await client.say('EHLO client.example')
    await client.say('STARTTLS')
    await client.startTls()
    assert.match((await client.say('NOOP')) ?? '', /^250/)
    assert.equal(inside(), 1)
    const known = new WeakRef([...server.connections][0] as object)
    assert.ok(known.deref())
    client.close()
    await becomes(0, inside)
    const isForgotten = () => {
      collect()
      return known.deref() === undefined
    }
    await eventually('nothing holds the connection any more', isForgotten, { everyMs: 100 })
  })
})

describe('a mail', () => {
  const begin = async (port: number): Promise<SmtpClient> => {
    const client = await SmtpClient.open(port)
    cleanUp(async () => client.close())
    await client.begin('anna@example.net')
    return client
  }

  test('that comes too slowly is not waited for', async () => {
    const { port } = await open({ secure: false, slowMs: shortMs })
    const client = await begin(port)
    const drip = setInterval(() => client.write('a\r\n'), 50)
    assert.match((await client.reply()) ?? '', /^421 4\.4\.2 The mail comes too slowly/)
    clearInterval(drip)
    assert.equal(await client.reply(), undefined)
  })

  test('may pause for as long as it was quick before, and every mail of a session anew', async () => {
    const slowMs = 2000
    const { port } = await open({ secure: false, slowMs })
    const client = await begin(port)
    for (let n = 0; n < 2; n++) {
      // 64 KiB, which may take a minute.
      client.write(`${'x'.repeat(62)}\r\n`.repeat(1024))
      await sleep(slowMs + 200)
      client.write('.\r\n')
      assert.match((await client.reply()) ?? '', /^250/)
      for (const line of ['MAIL FROM:<>', 'RCPT TO:<anna@example.net>', 'DATA']) await client.say(line)
    }
  })
})
