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

// Clients that connect and then send nothing or very little.

const { cert, key } = makeCertificate()
setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')
/** A limit that a test waits for, and one that a test never reaches. */
const [shortMs, neverMs] = [600, 10 * patienceMs]

interface Limits {
  secure: boolean
  maxConnections?: number
  handshakeMs?: number
  slowMs?: number
}

async function open({ secure, maxConnections = 50, handshakeMs = neverMs, slowMs = neverMs }: Limits) {
  const connectionLimit = new ConnectionLimit(maxConnections)
  const server = new StrictSmtpServer({
    listener: 'inbound',
    ...{ cert, key, secure, connectionLimit, handshakeMs, slowMs },
    ...{
      lifetimeMs: neverMs,
      socketTimeout: neverMs,
      maxErrors: 10,
      authOptional: true,
      disableReverseLookup: true,
    },
    onData: (stream, _session, callback) =>
      void stream.resume().once('end', () => callback(null, 'Accepted')),
  })
  const listener = await listen(server, { host: '127.0.0.1', port: 0, log: createLogger('silent') })
  cleanUp(() => listener.stop(100))
  return { ...listener, server, openCount: () => connectionLimit.count('127.0.0.1') }
}

async function silent(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  cleanUp(async () => void socket.destroy())
  await once(socket, 'connect')
  return socket.resume()
}

const countBecomes = (wanted: number, count: () => number): Promise<boolean> =>
  eventually(`${wanted} connections are open`, () => count() === wanted)

describe('before the handshake', () => {
  test('every connection is counted', async () => {
    const { port, openCount } = await open({ secure: true, maxConnections: 3 })
    const sockets = [await silent(port), await silent(port), await silent(port)]
    await countBecomes(3, openCount)
    await assert.rejects(SmtpClient.openTls(port), 'a fourth connection was accepted')
    for (const socket of sockets) socket.destroy()
    await countBecomes(0, openCount)
    const client = await SmtpClient.openTls(port)
    await countBecomes(1, openCount)
    client.close()
    await countBecomes(0, openCount)
  })

  test('a client is disconnected at the time limit, whether idle or not', async () => {
    const { port, openCount } = await open({ secure: true, handshakeMs: shortMs })
    const sockets = [await silent(port), await silent(port), await silent(port)]
    // Sends the first octets of a handshake one by one, so the client is not idle.
    const drip = setInterval(() => sockets[0]?.write('\x16'), 50)
    await eventually('all are disconnected', () => sockets.every(({ closed }) => closed))
    clearInterval(drip)
    await countBecomes(0, openCount)
  })

  test('a client that has completed it stays connected', async () => {
    // A handshake takes a few hundredths of a second.
    const handshakeMs = 3000
    const { port } = await open({ secure: true, handshakeMs })
    const client = await SmtpClient.openTls(port)
    await sleep(handshakeMs + 200)
    assert.match((await client.say('NOOP')) ?? '', /^250/)
    client.close()
  })

  test('in cleartext, a client over the limit gets 421', async () => {
    const { port, openCount } = await open({ secure: false, maxConnections: 1 })
    await silent(port)
    await countBecomes(1, openCount)
    const late = connect(port, '127.0.0.1')
    assert.match(String(await once(late, 'data')), /^421 4\.7\.0 Too many connections\r\n/)
    await once(late, 'close')
  })

  test('a client is disconnected at the same time limit after STARTTLS', async () => {
    const { port, openCount } = await open({ secure: false, handshakeMs: shortMs })
    const client = await SmtpClient.open(port)
    await client.say('EHLO client.example')
    assert.match((await client.say('STARTTLS')) ?? '', /^220/)
    await eventually('the client is disconnected', () => client.isOver)
    assert.equal(await client.reply(), undefined)
    await countBecomes(0, openCount)
  })
})

describe('after STARTTLS', () => {
  test('a closed connection is garbage collected', async () => {
    const { port, server, openCount } = await open({ secure: false })
    const client = await SmtpClient.open(port)
    await client.say('EHLO client.example')
    await client.say('STARTTLS')
    await client.startTls()
    assert.match((await client.say('NOOP')) ?? '', /^250/)
    assert.equal(openCount(), 1)
    const known = new WeakRef([...server.connections][0] as object)
    assert.ok(known.deref())
    client.close()
    await countBecomes(0, openCount)
    const isCollected = () => {
      collect()
      return known.deref() === undefined
    }
    await eventually('nothing references the connection', isCollected, { everyMs: 100 })
  })
})

describe('mail data', () => {
  const begin = async (port: number): Promise<SmtpClient> => {
    const client = await SmtpClient.open(port)
    cleanUp(async () => client.close())
    await client.begin('anna@example.net')
    return client
  }

  test('that arrives too slowly ends the session', async () => {
    const { port } = await open({ secure: false, slowMs: shortMs })
    const client = await begin(port)
    const drip = setInterval(() => client.write('a\r\n'), 50)
    assert.match((await client.reply()) ?? '', /^421 4\.4\.2 Message data received too slowly/)
    clearInterval(drip)
    assert.equal(await client.reply(), undefined)
  })

  test('can pause as long as it is ahead of the minimum rate, for each message in a session', async () => {
    const slowMs = 2000
    const { port } = await open({ secure: false, slowMs })
    const client = await begin(port)
    for (let n = 0; n < 2; n++) {
      // 64 KiB, which can take a minute.
      client.write(`${'x'.repeat(62)}\r\n`.repeat(1024))
      await sleep(slowMs + 200)
      client.write('.\r\n')
      assert.match((await client.reply()) ?? '', /^250/)
      for (const line of ['MAIL FROM:<>', 'RCPT TO:<anna@example.net>', 'DATA']) await client.say(line)
    }
  })
})
