import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PosternError } from '../../../platform/errors.ts'
import { testAnalysisThreads } from '../../../testing/harness/analysis-threads.ts'
import { startDns } from '../../../testing/peers/dns.ts'
import type { AnalysisThreads } from './analysis-threads.ts'
import { linkKeysOf } from './link.ts'

// Threads that authenticate and parse mail, and messages crafted to take too long.

const dns = await startDns({
  '.': [{ name: 'example.com', type: 'TXT', value: 'v=spf1 ip4:192.0.2.1 -all' }],
})

function threadsWith(limits: NonNullable<ConstructorParameters<typeof AnalysisThreads>[0]['limits']> = {}) {
  const analysisThreads = testAnalysisThreads({ dns: { servers: [dns.server] }, limits })
  const analyse = async (text: string, from = {}) => {
    const analysed = await analysisThreads.analyse(requestFor(text), { ...someone, ...from })
    assert.ok(!('fault' in analysed))
    const event = JSON.parse(String(analysed.eventData))
    return { ...analysed, parsed: event.is_parsed ? event : null }
  }
  return { analysisThreads, analyse }
}

const someone = { network: '192.0.2.1', addressee: 'project 1' }
const linkKeys = linkKeysOf([{ id: '1', key: Buffer.alloc(32, 1) }])

const requestFor = (text: string) => ({
  raw: Buffer.from(text),
  client: { ip: '192.0.2.1', helo: 'mta.example.com', sender: 'ada@example.com' },
  ...{ name: 'mx.example.net', recipients: ['shop@example.net'], forwards: [] },
  event: {
    links: {
      ...{ shard: 1, bodyId: '01a1e014-fc3c-7c5d-b332-11f4f026d9fe', keys: linkKeys, now: new Date() },
      publicUrl: 'https://mail.example.com',
    },
    readers: 1,
  },
})

const plain = 'From: ada@example.com\r\nSubject: Hello\r\n\r\nHello\r\n'
const endless = `From: ada@example.com\r\n\r\n${'\r\n'.repeat(2_000_000)}`

describe('an analysis thread', () => {
  test('authenticates and parses a message', async () => {
    const { analyse } = threadsWith()
    const { authentication, results, parsed } = await analyse(plain)
    assert.equal(authentication.spf.result, 'pass')
    assert.match(results, /^mx\.example\.net;/)
    assert.deepEqual([parsed?.subject, parsed?.text], ['Hello', 'Hello\n'])
  })

  test('that takes too long is terminated; its message stays unparsed, but others are parsed', async () => {
    // The endless message would take half a minute; each of the others takes a few milliseconds.
    const { analyse } = threadsWith({ parseTimeoutMs: 3000, quickLines: 10 })
    const long = `${plain}${'line\r\n'.repeat(20)}`
    const [first, ...others] = await Promise.all([
      analyse(endless),
      ...Array.from({ length: 5 }, () => analyse(long)),
    ])
    assert.equal(first?.parsed, null)
    assert.equal(first?.authentication.spf.result, 'pass', 'the authentication result is kept')
    for (const { parsed } of others) assert.equal(parsed?.subject, 'Hello')
    assert.equal((await analyse(plain)).parsed?.subject, 'Hello')
  })

  test('that gets no DNS response in time returns temperror', async () => {
    const { analyse } = threadsWith({ authTimeoutMs: 300 })
    await dns.pause()
    try {
      const { authentication, parsed } = await analyse(plain)
      assert.deepEqual(authentication.spf, { result: 'temperror', domain: null })
      assert.equal(parsed?.subject, 'Hello')
    } finally {
      dns.resume()
    }
  })

  test('verifies a limited number of signatures', async () => {
    const { analyse } = threadsWith()
    const signatures = Array.from(
      { length: 200 },
      (_, n) =>
        `DKIM-Signature: v=1; a=rsa-sha256; d=d${n}.example; s=s; h=from; l=${n}; bh=AAAA; b=AAAA\r\n`,
    )
    const { authentication } = await analyse(signatures.join('') + plain)
    assert.equal(authentication.dkim.length, 5)
    assert.ok(authentication.dkim.every(({ result }) => result !== 'pass'))
  })

  test('rejects a message in a routing loop before authenticating it', async () => {
    const { analysisThreads } = threadsWith()
    const looping = `X-Postern-Forwarded: shop@example.net\r\n${plain}`
    assert.deepEqual(await analysisThreads.analyse(requestFor(looping), someone), { fault: 'loop' })
  })
})

describe('the scheduling of analysis threads', () => {
  const invoice = `${plain}${'line\r\n'.repeat(20)}`

  /**
   * Returns the order in which an invoice and the messages queued ahead of it (only empty lines) are
   * completed.
   */
  async function orderBehindBombs(invoiceIs: { network: string; addressee: string }): Promise<string[]> {
    const unlimited = {
      cpuMsPerNetwork: Number.MAX_SAFE_INTEGER,
      cpuMsPerAddressee: Number.MAX_SAFE_INTEGER,
    }
    const { analyse } = threadsWith({ parseTimeoutMs: 600, quickLines: 10, ...unlimited })
    const order: string[] = []
    const note = (name: string) => () => void order.push(name)
    const bombs = Array.from({ length: 3 }, (_, no) => analyse(endless).then(note(`bomb ${no}`)))
    await Promise.all([...bombs, analyse(invoice, invoiceIs).then(note('invoice'))])
    return order
  }

  test('does not delay mail from another network to another addressee behind messages consisting of empty lines', async () => {
    const order = await orderBehindBombs({ network: '198.51.100.7', addressee: 'project 2' })
    assert.ok(order.indexOf('invoice') <= 1, order.join())
  })

  test('delays mail from another network to the same addressee by at most one message', async () => {
    const order = await orderBehindBombs({ network: '198.51.100.7', addressee: 'project 1' })
    assert.ok(order.indexOf('invoice') <= 1, order.join())
  })
})

describe('the CPU time of analysis threads', () => {
  const report = Buffer.from(plain)
  const outcomeFor = (analysisThreads: AnalysisThreads, network: string, addressee: string) =>
    analysisThreads.readReport(report, { network, addressee }).then(
      () => 'read',
      (error: PosternError) => error.code,
    )

  test('is charged to the network and the addressee, whose mail is rejected when it is used up', async () => {
    const { analysisThreads } = threadsWith({
      cpuMsPerNetwork: 0.001,
      cpuMsPerAddressee: 0.001,
      quietCpuMs: 0,
    })
    assert.equal(await outcomeFor(analysisThreads, 'a', 'x'), 'read')
    assert.equal(await outcomeFor(analysisThreads, 'a', 'y'), 'rate_limited')
    assert.equal(await outcomeFor(analysisThreads, 'b', 'x'), 'rate_limited')
    assert.equal(await outcomeFor(analysisThreads, 'b', 'y'), 'read')
    assert.ok(analysisThreads.isSpent({ network: 'a' }) && !analysisThreads.isSpent({ network: 'c' }))
  })

  test('of a flooded addressee remains available to small messages from a quiet network, but not to long ones', async () => {
    const { analysisThreads, analyse } = threadsWith({ cpuMsPerAddressee: 0.001, quickLines: 10 })
    await analyse(plain, { network: 'flood', addressee: 'x' })
    const long = requestFor(`${plain}${'line\r\n'.repeat(20)}`)
    await assert.rejects(analysisThreads.analyse(long, { network: 'b', addressee: 'x' }), {
      code: 'rate_limited',
    })
    assert.equal(await outcomeFor(analysisThreads, 'c', 'x'), 'read')
    assert.ok(!analysisThreads.isSpent({ network: 'c', addressee: 'x' }))
  })

  test('is checked again when a queued job starts', async () => {
    const { analysisThreads } = threadsWith({ cpuMsPerNetwork: 0.001 })
    const outcomes = await Promise.all(['x', 'y', 'z'].map((one) => outcomeFor(analysisThreads, 'a', one)))
    assert.deepEqual(outcomes, ['read', 'rate_limited', 'rate_limited'])
  })

  test("has no limit for the operator's own mail servers", async () => {
    const { analysisThreads } = threadsWith({ cpuMsPerNetwork: 0.001, cpuMsPerAddressee: 0.001 })
    for (let no = 0; no < 3; no++) {
      assert.ok(await analysisThreads.readReport(report, { ...someone, isUnlimited: true }))
    }
  })
})
