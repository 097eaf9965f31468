import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { describe, test } from 'node:test'
import { request } from 'undici'
import {
  embedding,
  insideLiterals,
  insideNames,
  insideV4,
  insideV6,
} from '../../testing/fixtures/private-hosts.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { patienceMs } from '../../testing/harness/waiting.ts'
import { type DnsRecord, resolverAt, startDns } from '../../testing/peers/dns.ts'
import { startRebindingDns } from '../../testing/peers/rebinding-dns.ts'
import { createNetGuard, type NetGuard, NotAllowed } from './net-guard.ts'

/**
 * No tenant's URL reaches an internal address. Listeners on every address of this machine count connections, and a guard
 * that allows them proves that the counting works.
 */
interface Counter {
  port: number
  /** The local address of each connection. */
  connections: string[]
}

async function startCounter(host: string, port = 0): Promise<Counter> {
  const connections: string[] = []
  const server = createServer((socket) => {
    connections.push(socket.localAddress ?? '?')
    socket.destroy()
  })
  server.listen(port, host)
  await once(server, 'listening')
  cleanUp(async () => void server.close())
  return { port: (server.address() as AddressInfo).port, connections }
}

/** Skips the syntax check, because the check at connection time must be sufficient. */
async function tryAll(guard: NetGuard, urls: readonly string[]): Promise<unknown[]> {
  const agent = guard.agent({
    connectTimeoutMs: patienceMs,
    headersTimeoutMs: patienceMs,
    bodyTimeoutMs: patienceMs,
    connectionsPerOrigin: 2,
  })
  const attempt = (url: string) =>
    request(url, { dispatcher: agent, method: 'POST', body: '{}' }).then(
      () => 'answered',
      (error: unknown) => error,
    )
  const outcomes: unknown[] = []
  for (const url of urls) outcomes.push(await attempt(url))
  await agent.destroy()
  return outcomes
}

const own = Object.values(networkInterfaces()).flatMap((all = []) =>
  all.map(({ address, family }) => (family === 'IPv6' ? `[${address}]` : address)),
)
// Listens on all IPv4 and IPv6 addresses of this machine.
const inside = await startCounter('::')
const at = (host: string) => `https://${host}:${inside.port}/`

const addresses = [...insideV4, ...insideV6, ...insideV4.flatMap(embedding)]
const recordOf = (name: string, address: string): DnsRecord => ({
  name,
  type: address.includes(':') ? 'AAAA' : 'A',
  value: address,
})
const records: DnsRecord[] = addresses.flatMap((address, n) => [
  recordOf(`r${n}.example`, address),
  { name: `chain${n}.example`, type: 'CNAME', value: `link${n}.example` },
  { name: `link${n}.example`, type: 'CNAME', value: `r${n}.example` },
  // Allowed and forbidden addresses under one name.
  recordOf(`mixed${n}.example`, '93.184.215.14'),
  recordOf(`mixed${n}.example`, '2606:4700::1111'),
  recordOf(`mixed${n}.example`, address),
])
const dns = await startDns({ '.': [...records, recordOf('localhost', '127.0.0.1')] })
const resolver = resolverAt(dns.server)
const ports = [inside.port]
const strict = createNetGuard({ resolver, allowedNetworks: [], ports })

const isGlobal = (host: string): boolean =>
  createNetGuard({ resolver, allowedNetworks: [], ports: [443] }).refusalOf(new URL(`https://${host}/`)) ===
  undefined

describe('the SSRF guard', () => {
  test('rejects internal addresses in any notation and internal names', async () => {
    const hosts = [...insideLiterals, ...insideNames, ...own.filter((host) => !isGlobal(host))]
    assert.ok(new Set(hosts).size >= 300, `${new Set(hosts).size} spellings`)
    // Text that is not a URL cannot be requested either.
    const urls = hosts.map(at).filter((url) => URL.canParse(url))
    assert.ok(urls.length >= 300, `${urls.length} valid URLs`)
    for (const url of urls) assert.ok(strict.refusalOf(new URL(url)) !== undefined, url)
    for (const [n, outcome] of (await tryAll(strict, urls)).entries()) {
      assert.ok(outcome instanceof NotAllowed, `${urls[n]}: ${outcome}`)
    }
    assert.deepEqual(inside.connections, [])
  })

  test('rejects names that resolve to internal addresses, including through aliases or alongside a public address', async () => {
    const urls = addresses
      .flatMap((_, n) => [`r${n}`, `chain${n}`, `mixed${n}`])
      .map((name) => at(`${name}.example`))
    assert.ok(urls.length >= 300, `${urls.length} names`)
    for (const url of urls)
      assert.equal(strict.refusalOf(new URL(url)), undefined, 'not detectable without a lookup')
    for (const [n, outcome] of (await tryAll(strict, urls)).entries()) {
      assert.ok(outcome instanceof NotAllowed, `${urls[n]}: ${outcome}`)
    }
    assert.deepEqual(inside.connections, [])
  })

  test('allows the same URLs if the operator allows the networks', async () => {
    const open = createNetGuard({ resolver, allowedNetworks: ['127.0.0.0/8', '::1'], ports })
    const literals = insideLiterals.map(at).filter((url) => {
      const host = URL.parse(url)?.hostname ?? ''
      return /^127\./.test(host) || host === '[::1]'
    })
    const loopback = addresses.flatMap((address, n) =>
      /^127\.|^::1$/.test(address) ? [`r${n}.example`, `chain${n}.example`] : [],
    )
    const urls = [...literals, ...[...loopback, 'localhost'].map(at)]
    await tryAll(open, urls)
    assert.ok(urls.length > 60, `${urls.length} URLs`)
    assert.equal(inside.connections.length, urls.length)
    inside.connections.length = 0
  })
})

describe('DNS rebinding', () => {
  test('has no effect: each connection resolves the name once and uses that result', async () => {
    // 127.0.0.2 acts as a public address. The forbidden listeners use the same port.
    const outside = await startCounter('127.0.0.2')
    const forbidden = await Promise.all(['127.0.0.1', '::1'].map((host) => startCounter(host, outside.port)))
    const [good, bad] = ['127.0.0.2', '127.0.0.1']
    const scripts: Record<string, (type: string, asked: number) => string[]> = {
      'good-then-bad': (type, asked) => (type === 'AAAA' ? [] : asked === 0 ? [good] : [bad]),
      'good-good-then-bad': (type, asked) => (type === 'AAAA' ? [] : asked < 2 ? [good] : [bad]),
      'in-turn': (type, asked) => (type === 'AAAA' ? [] : asked % 2 === 0 ? [good] : [bad]),
      'bad-then-good': (type, asked) => (type === 'AAAA' ? [] : asked % 2 === 0 ? [bad] : [good]),
      'bad-in-the-other-kind': (type, asked) => (type === 'A' ? [good] : asked % 2 === 0 ? [] : ['::1']),
      'both-at-once': (type) => (type === 'AAAA' ? [] : [good, bad]),
      'both-the-other-way': (type) => (type === 'AAAA' ? [] : [bad, good]),
    }
    const rebinding = await startRebindingDns(
      (name, type, asked) => scripts[name.split('.')[0] ?? '']?.(type, asked) ?? [],
    )
    const guard = createNetGuard({
      resolver: resolverAt(rebinding.server),
      allowedNetworks: [good],
      ports: [outside.port],
    })
    const rounds = 20
    for (const script of Object.keys(scripts)) {
      const name = `${script}.example`
      const before = outside.connections.length
      const urls = Array.from({ length: rounds }, () => `https://${name}:${outside.port}/`)
      const outcomes = await tryAll(guard, urls)
      const refused = outcomes.filter((outcome) => outcome instanceof NotAllowed).length
      const connected = outside.connections.length - before
      assert.equal(connected + refused, rounds, script)
      assert.deepEqual(
        rebinding.asked.get(name),
        { A: rounds, AAAA: rounds },
        `${script}: one lookup per connection`,
      )
      assert.equal(
        connected,
        { 'good-then-bad': 1, 'good-good-then-bad': 2 }[script] ?? (/both/.test(script) ? 0 : rounds / 2),
      )
    }
    assert.deepEqual(
      forbidden.flatMap(({ connections }) => connections),
      [],
    )
    // If both addresses are allowed, the other listener gets a connection.
    const open = createNetGuard({
      resolver: resolverAt(rebinding.server),
      allowedNetworks: [good, bad],
      ports: [outside.port],
    })
    await tryAll(open, [`https://good-then-bad.example:${outside.port}/`])
    assert.equal(forbidden[0]?.connections.length, 1)
  })
})
