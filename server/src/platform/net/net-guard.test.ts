import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { request } from 'undici'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { patienceMs } from '../../testing/harness/waiting.ts'
import { makeCertificate } from '../../testing/peers/certificate.ts'
import { resolverAt, startDns } from '../../testing/peers/dns.ts'
import { createNetGuard, type NetGuard, NotAllowed } from './net-guard.ts'

const dns = await startDns({
  '.': [
    { name: 'receiver.example', type: 'A', value: '127.0.0.1' },
    { name: 'away.example', type: 'CNAME', value: 'receiver.example' },
    { name: 'textual.example', type: 'TXT', value: 'no address' },
  ],
})
const resolver = resolverAt(dns.server)
const certificate = makeCertificate()
const timeouts = {
  connectTimeoutMs: patienceMs,
  headersTimeoutMs: patienceMs,
  bodyTimeoutMs: patienceMs,
}

const strict = createNetGuard({ resolver, allowedNetworks: [], ports: [443, 8443] })

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanUp(async () => void server.close())
  return (server.address() as AddressInfo).port
}

/** Counts connections and closes them immediately. */
async function startCounter(): Promise<{ port: number; calls: number }> {
  const counter = { port: 0, calls: 0 }
  counter.port = await listening(
    createServer((socket) => {
      counter.calls++
      socket.destroy()
    }),
  )
  return counter
}

async function startReceiver(answer: RequestListener): Promise<number> {
  const server = createHttpsServer({ cert: certificate.cert, key: certificate.key }, answer)
  return listening(server)
}

const insideGuard = (port: number, ca?: string): NetGuard =>
  createNetGuard({ resolver, allowedNetworks: ['127.0.0.0/8'], ports: [port], ...(ca && { ca }) })

async function call(guard: NetGuard, url: string, headers: Record<string, string> = {}) {
  const agent = guard.agent({ ...timeouts, connectionsPerOrigin: 1 })
  try {
    const { statusCode, body } = await request(url, {
      dispatcher: agent,
      headers,
      method: 'POST',
      body: '{}',
    })
    return { status: statusCode, text: await body.text() }
  } finally {
    await agent.destroy()
  }
}

describe('checking a URL without a lookup', () => {
  const refusalOf = (text: string) => strict.refusalOf(new URL(text))

  test('allows public names and global addresses', () => {
    for (const url of [
      'https://example.com/hook',
      'https://example.com:8443/',
      'https://8.8.8.8/',
      'https://[2606:4700::1111]/',
    ]) {
      assert.equal(refusalOf(url), undefined, url)
    }
  })

  test('rejects all other URLs with a reason', () => {
    for (const [url, why] of [
      ['http://example.com/', /^The address must begin with https/],
      ['wss://example.com/', /^The address must begin with https/],
      ['https://user@example.com/', /^The URL must not contain a user name/],
      ['https://:secret@example.com/', /^The URL must not contain a user name/],
      ['https://example.com:22/', /^Port 22 is not allowed here; use one of the ports 443, 8443\.$/],
      ['https://example.com:0/', /^Port 0 is not allowed/],
      ['https://10.0.0.1/', /^The host is a private or special address/],
      ['https://[::ffff:8.8.8.8]/', /^The host is a private or special address/],
      ['https://db.internal/', /^The host is not a public name/],
      ['https://example.com./', /^The host is not a public name/],
    ] as const) {
      assert.match(refusalOf(url) ?? '', why, url)
    }
  })

  test('allows the networks that the operator configured and their names, but no others', () => {
    const guard = createNetGuard({ resolver, allowedNetworks: ['10.20.0.0/16', 'fd00:1::7'], ports: [443] })
    for (const url of [
      'https://10.20.3.4/',
      'https://[fd00:1::7]/',
      'https://hooks.internal/',
      'https://hooks/',
    ]) {
      assert.equal(guard.refusalOf(new URL(url)), undefined, url)
    }
    for (const url of [
      'https://10.21.0.1/',
      'https://[fd00:1::8]/',
      'https://127.0.0.1/',
      'https://a_b.internal/',
    ]) {
      assert.match(guard.refusalOf(new URL(url)) ?? '', /^The host is/, url)
    }
  })
})

describe('a guarded request', () => {
  test('reaches a receiver by address and by name', async () => {
    const port = await startReceiver((incoming, response) => response.end(incoming.headers.host))
    const guard = insideGuard(port, certificate.cert.toString())
    const answer = await call(guard, `https://127.0.0.1:${port}/`)
    assert.deepEqual(answer, { status: 200, text: `127.0.0.1:${port}` })
    // The connection succeeds; only the certificate is for another name.
    await assert.rejects(call(guard, `https://away.example:${port}/`), /altnames.*away\.example/s)
  })

  test('does not disclose whether a name is internal or does not exist', async () => {
    const answers: string[] = []
    for (const name of ['receiver.example', 'away.example', 'textual.example', 'missing.example']) {
      await assert.rejects(call(strict, `https://${name}/`), (error) => {
        assert.ok(error instanceof NotAllowed)
        answers.push(error.message.replace(name, 'It'))
        return true
      })
    }
    assert.deepEqual(new Set(answers).size, 1, answers.join('\n'))
    assert.match(answers[0] ?? '', /^It has no public address\. .*\.$/)
  })

  test('is rejected for other ports and protocols, even without checking the URL', async () => {
    const counter = await startCounter()
    const { port } = counter
    const guard = insideGuard(443)
    for (const url of [
      `https://127.0.0.1:${port}/`,
      `http://127.0.0.1:${port}/`,
      `https://receiver.example:${port}/`,
    ]) {
      await assert.rejects(call(guard, url), NotAllowed)
    }
    assert.equal(counter.calls, 0)
    await assert.rejects(call(insideGuard(port), `https://127.0.0.1:${port}/`))
    assert.equal(counter.calls, 1, 'the listener counts connections')
  })

  test('does not follow redirects', async () => {
    const elsewhere = await startCounter()
    const port = await startReceiver((_incoming, response) => {
      response.writeHead(307, { location: `https://127.0.0.1:${elsewhere.port}/` }).end()
    })
    const guard = createNetGuard({
      resolver,
      allowedNetworks: ['127.0.0.1'],
      ports: [port, elsewhere.port],
      ca: certificate.cert.toString(),
    })
    assert.equal((await call(guard, `https://127.0.0.1:${port}/`)).status, 307)
    assert.equal(elsewhere.calls, 0)
  })

  test('ignores proxies and NODE_TLS_REJECT_UNAUTHORIZED in the environment', async () => {
    const proxy = await startCounter()
    const port = await startReceiver((_incoming, response) => response.end('here'))
    const before = { ...process.env }
    const proxyUrl = `http://127.0.0.1:${proxy.port}`
    Object.assign(process.env, {
      HTTPS_PROXY: proxyUrl,
      https_proxy: proxyUrl,
      ALL_PROXY: proxyUrl,
      NODE_USE_ENV_PROXY: '1',
      NODE_TLS_REJECT_UNAUTHORIZED: '0',
    })
    try {
      const trusting = insideGuard(port, certificate.cert.toString())
      assert.equal((await call(trusting, `https://127.0.0.1:${port}/`)).text, 'here')
      await assert.rejects(call(insideGuard(port), `https://127.0.0.1:${port}/`), /self-signed certificate/)
    } finally {
      process.env = before
    }
    assert.equal(proxy.calls, 0)
  })

  test('times out if the DNS server or the receiver does not respond', async () => {
    const silent = await listening(createServer(() => {}))
    const agent = insideGuard(silent).agent({ ...timeouts, connectTimeoutMs: 500, connectionsPerOrigin: 1 })
    // All other timeouts are longer than the test.
    const timesOut = (url: string) =>
      assert.rejects(request(url, { dispatcher: agent, method: 'POST' }), {
        code: 'UND_ERR_CONNECT_TIMEOUT',
        message: /timeout: 500ms/,
      })
    await dns.pause()
    try {
      await timesOut(`https://receiver.example:${silent}/`)
    } finally {
      dns.resume()
    }
    await timesOut(`https://127.0.0.1:${silent}/`)
    await agent.destroy()
  })

  test("does not wait for another request's connection", async () => {
    const all = Promise.withResolvers<Socket[]>()
    const calls: Socket[] = []
    // The server never completes the TLS handshake.
    const silent = await listening(
      createServer((socket) => void (calls.push(socket) === 3 && all.resolve(calls))),
    )
    const agent = insideGuard(silent).agent({ ...timeouts, connectionsPerOrigin: 3 })
    const requests = Array.from({ length: 3 }, () =>
      request(`https://127.0.0.1:${silent}/`, { dispatcher: agent, method: 'POST' }),
    )
    for (const socket of await all.promise) socket.destroy()
    for (const { status } of await Promise.allSettled(requests)) assert.equal(status, 'rejected')
    await agent.destroy()
  })
})
