import assert from 'node:assert/strict'
import { Resolver as NodeResolver } from 'node:dns/promises'
import { readdir, readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import { eventually, patienceMs } from '../../testing/harness/waiting.ts'
import { type DnsRecord, startDns } from '../../testing/peers/dns.ts'
import { steadyPort } from '../../testing/peers/steady-port.ts'
import { createResolver } from './dns.ts'

const zone = 'postern.test'
const longValue = `v=DKIM1; k=rsa; p=${'Aq3'.repeat(200)}`
const records: DnsRecord[] = [
  { name: `long.${zone}`, type: 'TXT', value: longValue },
  { name: `huge.${zone}`, type: 'TXT', value: 'x'.repeat(5000) },
  { name: `several.${zone}`, type: 'TXT', value: 'v=spf1 -all' },
  { name: `several.${zone}`, type: 'TXT', value: 'postern-verification="a\\b"' },
  { name: `alias.${zone}`, type: 'CNAME', value: `Target.${zone}` },
  { name: `target.${zone}`, type: 'CNAME', value: `long.${zone}` },
  { name: `mail.${zone}`, type: 'MX', value: '20 Backup.Example.com' },
  { name: `mail.${zone}`, type: 'MX', value: '5 mx.example.com' },
  { name: `nothing.${zone}`, type: 'MX', value: '0 .' },
  { name: `host.${zone}`, type: 'A', value: '192.0.2.1' },
  { name: `both.${zone}`, type: 'A', value: '192.0.2.2' },
  { name: `both.${zone}`, type: 'AAAA', value: '2001:db8::2' },
  { name: `six.${zone}`, type: 'AAAA', value: '::ffff:127.0.0.1' },
  { name: `far.${zone}`, type: 'CNAME', value: `near.${zone}` },
  { name: `near.${zone}`, type: 'CNAME', value: `both.${zone}` },
  { name: `txt.${zone}`, type: 'TXT', value: 'one' },
]

const dns = await startDns({ [zone]: records })
const patient = { timeoutMs: patienceMs, tries: 2 }
const resolver = createResolver({ servers: [dns.server], ...patient })
const found = (...values: string[]) => ({ kind: 'found', values })
const absent = { kind: 'absent' }
const failed = (why: string) => ({ kind: 'failed', why })

/** Asserts that a lookup ends before c-ares with the same settings would give up. */
async function endsBeforeCares<T>(
  { servers, ...options }: { servers: string[]; timeout: number; tries: number },
  lookUp: () => Promise<T>,
): Promise<T> {
  const alone = new NodeResolver(options)
  alone.setServers(servers)
  let isOver = false
  const tried = alone.resolveTxt(`txt.${zone}`).catch(() => {
    isOver = true
  })
  const answer = await lookUp()
  assert.equal(isOver, false, 'c-ares gave up first')
  alone.cancel()
  await tried
  return answer
}

describe('a DNS lookup', () => {
  test('joins the strings of a long TXT record', async () => {
    assert.ok(longValue.length > 510, 'three chunks')
    assert.deepEqual(await resolver.txt(`long.${zone}`), found(longValue))
  })

  test('retries truncated responses over TCP', async () => {
    assert.deepEqual(await resolver.txt(`huge.${zone}`), found('x'.repeat(5000)))
  })

  test('returns all TXT records of a name', async () => {
    const answer = await resolver.txt(`several.${zone}`)
    assert.ok(answer.kind === 'found')
    assert.deepEqual(answer.values.sort(), ['postern-verification="a\\b"', 'v=spf1 -all'])
  })

  test('returns the direct target of a CNAME in lower case without a trailing dot', async () => {
    assert.deepEqual(await resolver.cname(`alias.${zone}`), found(`target.${zone}`))
    assert.deepEqual(await resolver.txt(`alias.${zone}`), found(longValue), 'TXT follows the chain')
  })

  test('returns MX records in order of priority', async () => {
    assert.deepEqual(await resolver.mx(`mail.${zone}`), found('5 mx.example.com', '20 backup.example.com'))
    assert.deepEqual(await resolver.mx(`nothing.${zone}`), found('0 .'), 'a null MX')
  })

  test('returns IPv4 and IPv6 addresses from the end of an alias chain', async () => {
    const both = found('192.0.2.2', '2001:db8::2')
    assert.deepEqual(await resolver.addresses(`both.${zone}`), both)
    assert.deepEqual(await resolver.addresses(`far.${zone}`), both)
    assert.deepEqual(await resolver.addresses(`host.${zone}`), found('192.0.2.1'))
    assert.deepEqual(await resolver.addresses(`six.${zone}`), found('::ffff:127.0.0.1'))
    assert.deepEqual(await resolver.addresses(`txt.${zone}`), absent)
    assert.deepEqual(await resolver.addresses(`missing.${zone}`), absent)
  })

  test('ignores /etc/hosts', async () => {
    assert.match(await readFile('/etc/hosts', 'utf8'), /\slocalhost/)
    assert.deepEqual(
      await resolver.addresses('localhost'),
      failed('the DNS server refused the query (REFUSED)'),
    )
  })

  test('reports a missing name and a missing record type as absent', async () => {
    for (const kind of ['txt', 'cname', 'mx'] as const) {
      assert.deepEqual(await resolver[kind](`missing.${zone}`), absent)
      assert.deepEqual(await resolver[kind](`host.${zone}`), absent)
    }
  })

  test('returns changes immediately, regardless of the TTL', async () => {
    assert.deepEqual(await resolver.txt(`txt.${zone}`), found('one'))
    assert.deepEqual(await resolver.txt(`later.${zone}`), absent)
    await dns.setZone(zone, [
      ...records.slice(0, -1),
      { name: `txt.${zone}`, type: 'TXT', value: 'two' },
      { name: `later.${zone}`, type: 'TXT', value: 'here' },
    ])
    assert.deepEqual(await resolver.txt(`txt.${zone}`), found('two'))
    assert.deepEqual(await resolver.txt(`later.${zone}`), found('here'))
    await dns.setZone(zone, records)
    assert.deepEqual(await resolver.txt(`later.${zone}`), absent)
  })

  test('works over IPv6 and uses the next server if the first is down', async () => {
    const ipv6 = createResolver({ servers: [dns.serverIpv6], ...patient })
    assert.deepEqual(await ipv6.txt(`long.${zone}`), found(longValue))
    const nobody = `127.0.0.1:${await steadyPort()}`
    const both = createResolver({ servers: [nobody, dns.server], ...patient })
    assert.deepEqual(await both.txt(`long.${zone}`), found(longValue))
  })
})

describe('a failed DNS lookup', () => {
  test('is not reported as absent after SERVFAIL', async () => {
    await dns.breakZone(zone)
    assert.deepEqual(await resolver.txt(`txt.${zone}`), failed('the DNS server failed (SERVFAIL)'))
    await dns.setZone(zone, records)
    assert.deepEqual(await resolver.txt(`txt.${zone}`), found('one'), 'recovers')
  })

  test('is not reported as absent if the server returns REFUSED or is down, or the name is invalid', async () => {
    const refused = failed('the DNS server refused the query (REFUSED)')
    assert.deepEqual(await resolver.txt('elsewhere.example'), refused)
    await dns.setZone('example', [{ name: 'elsewhere.example', type: 'TXT', value: 'here' }])
    assert.deepEqual(await resolver.txt('elsewhere.example'), found('here'), 'after the zone is added')
    const nobody = createResolver({ servers: [`127.0.0.1:${await steadyPort()}`], ...patient })
    assert.deepEqual(await nobody.txt(`txt.${zone}`), failed('no DNS server is listening'))
    const bad = failed('this is not a valid DNS name')
    assert.deepEqual(await resolver.txt(`${'a'.repeat(64)}.${zone}`), bad)
  })

  test('times out if the server does not respond, regardless of the number of tries', async () => {
    await dns.pause()
    try {
      // c-ares waits at least 250 ms and doubles the time for each try, so without a limit the lookup takes 3.5 s or more.
      const silent = failed('no DNS server answered in time')
      const one = { servers: [dns.server], tries: 4 }
      const single = createResolver({ ...one, timeoutMs: 600 })
      const answer = await endsBeforeCares({ ...one, timeout: 40 }, () => single.txt(`txt.${zone}`))
      assert.deepEqual(answer, silent)
      const two = { servers: [dns.server, dns.serverIpv6], tries: 3 }
      const several = createResolver({ ...two, timeoutMs: 900 })
      const other = await endsBeforeCares({ ...two, timeout: 64 }, () => several.mx(`mail.${zone}`))
      assert.deepEqual(other, silent)
    } finally {
      dns.resume()
    }
    assert.deepEqual(await resolver.txt(`txt.${zone}`), found('one'))
  })

  test('is not reported before the timeout', async () => {
    const impatient = createResolver({ servers: [dns.server], timeoutMs: 600, tries: 2 })
    await dns.pause()
    const answer = resolver.txt(`txt.${zone}`)
    try {
      // The lookup with the shorter timeout fails; the other one continues.
      assert.deepEqual(await impatient.txt(`txt.${zone}`), failed('no DNS server answered in time'))
    } finally {
      dns.resume()
    }
    assert.deepEqual(await answer, found('one'))
  })
})

describe('many concurrent DNS lookups', () => {
  test('all succeed and leave no open sockets', async () => {
    const openBefore = (await readdir('/proc/self/fd')).length
    const answers = await Promise.all(Array.from({ length: 3000 }, () => resolver.txt(`txt.${zone}`)))
    assert.equal(answers.filter(({ kind }) => kind === 'found').length, 3000)
    await eventually(
      'the sockets are closed',
      async () => (await readdir('/proc/self/fd')).length < openBefore + 10,
    )
  })

  test('all time out if the server does not respond, including those in the queue', async () => {
    const bounded = createResolver({ servers: [dns.server], timeoutMs: 600, tries: 2 })
    await dns.pause()
    try {
      const answers = await Promise.all(Array.from({ length: 1000 }, () => bounded.txt(`txt.${zone}`)))
      assert.ok(answers.every(({ kind }) => kind === 'failed'))
      // The timeout includes the wait in the queue, where most of them end.
      const queued = answers.filter(
        ({ kind, ...rest }) => kind === 'failed' && /none finished within 600 ms/.test(inspect(rest)),
      )
      assert.ok(queued.length > 500, `${queued.length} timed out in the queue`)
    } finally {
      dns.resume()
    }
    const answer = await eventually('a slot is free again', async () => {
      const { kind, ...rest } = await bounded.txt(`txt.${zone}`)
      return kind === 'found' && rest
    })
    assert.deepEqual(answer, { values: ['one'] })
  })
})
