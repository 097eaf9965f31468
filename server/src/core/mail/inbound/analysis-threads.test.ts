import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PosternError } from '../../../platform/errors.ts'
import { testAnalysisThreads } from '../../../testing/harness/analysis-threads.ts'
import { startDns } from '../../../testing/peers/dns.ts'
import type { AnalysisThreads } from './analysis-threads.ts'
import { linkKeysOf } from './link.ts'

/** Threads that judge and read mail, and what becomes of one that would take for ever. */
const dns = await startDns({
  '.': [{ name: 'example.com', type: 'TXT', value: 'v=spf1 ip4:192.0.2.1 -all' }],
})

function examinersWith(limits: NonNullable<ConstructorParameters<typeof AnalysisThreads>[0]['limits']> = {}) {
  const examiners = testAnalysisThreads({ dns: { servers: [dns.server] }, limits })
  const examine = async (text: string, from = {}) => {
    const examined = await examiners.examine(mailToRead(text), { ...someone, ...from })
    assert.ok(!('fault' in examined))
    const told = JSON.parse(String(examined.told))
    return { ...examined, parsed: told.is_parsed ? told : null }
  }
  return { examiners, examine }
}

const someone = { network: '192.0.2.1', addressee: 'project 1' }
const linkKeys = linkKeysOf([{ id: '1', key: Buffer.alloc(32, 1) }])

const mailToRead = (text: string) => ({
  raw: Buffer.from(text),
  client: { ip: '192.0.2.1', helo: 'mta.example.com', sender: 'ada@example.com' },
  ...{ name: 'mx.example.net', recipients: ['shop@example.net'], forwards: [] },
  reading: {
    links: {
      ...{ shard: 1, bodyId: '01a1e014-fc3c-7c5d-b332-11f4f026d9fe', keys: linkKeys, now: new Date() },
      publicUrl: 'https://mail.example.com',
    },
    readers: 1,
  },
})

const plain = 'From: ada@example.com\r\nSubject: Hello\r\n\r\nHello\r\n'
const endless = `From: ada@example.com\r\n\r\n${'\r\n'.repeat(2_000_000)}`

describe('an examiner', () => {
  test('judges and reads a mail', async () => {
    const { examine } = examinersWith()
    const { authentication, results, parsed } = await examine(plain)
    assert.equal(authentication.spf.result, 'pass')
    assert.match(results, /^mx\.example\.net;/)
    assert.deepEqual([parsed?.subject, parsed?.text], ['Hello', 'Hello\n'])
  })

  test('that a mail keeps too long is ended, that mail is left unread, and others are read', async () => {
    // The endless mail would take half a minute, and each of the others a few milliseconds.
    const { examine } = examinersWith({ parsedWithinMs: 3000, quickLines: 10 })
    const long = `${plain}${'line\r\n'.repeat(20)}`
    const [first, ...others] = await Promise.all([
      examine(endless),
      ...Array.from({ length: 5 }, () => examine(long)),
    ])
    assert.equal(first?.parsed, null)
    assert.equal(first?.authentication.spf.result, 'pass', 'what was known is kept')
    for (const { parsed } of others) assert.equal(parsed?.subject, 'Hello')
    assert.equal((await examine(plain)).parsed?.subject, 'Hello')
  })

  test('that gets no answer from the DNS in time says so, and no more than that', async () => {
    const { examine } = examinersWith({ judgedWithinMs: 300 })
    await dns.pause()
    try {
      const { authentication, parsed } = await examine(plain)
      assert.deepEqual(authentication.spf, { result: 'temperror', domain: null })
      assert.equal(parsed?.subject, 'Hello')
    } finally {
      dns.resume()
    }
  })

  test('looks at a few signatures of many, and takes no longer for more', async () => {
    const { examine } = examinersWith()
    const signatures = Array.from(
      { length: 200 },
      (_, n) =>
        `DKIM-Signature: v=1; a=rsa-sha256; d=d${n}.example; s=s; h=from; l=${n}; bh=AAAA; b=AAAA\r\n`,
    )
    const { authentication } = await examine(signatures.join('') + plain)
    assert.equal(authentication.dkim.length, 5)
    assert.ok(authentication.dkim.every(({ result }) => result !== 'pass'))
  })

  test('refuses a mail that goes in a circle before it is evaluated', async () => {
    const { examiners } = examinersWith()
    const looping = `X-Postern-Forwarded: shop@example.net\r\n${plain}`
    assert.deepEqual(await examiners.examine(mailToRead(looping), someone), { fault: 'loop' })
  })
})

describe('the turns of examiners', () => {
  const invoice = `${plain}${'line\r\n'.repeat(20)}`

  /** In which order mails of empty lines and an invoice behind them are answered. */
  async function orderBehindBombs(invoiceIs: { network: string; addressee: string }): Promise<string[]> {
    const unlimited = {
      cpuMsPerNetwork: Number.MAX_SAFE_INTEGER,
      cpuMsPerAddressee: Number.MAX_SAFE_INTEGER,
    }
    const { examine } = examinersWith({ parsedWithinMs: 600, quickLines: 10, ...unlimited })
    const order: string[] = []
    const note = (name: string) => () => void order.push(name)
    const bombs = Array.from({ length: 3 }, (_, no) => examine(endless).then(note(`bomb ${no}`)))
    await Promise.all([...bombs, examine(invoice, invoiceIs).then(note('invoice'))])
    return order
  }

  test('another network to another addressee does not wait for mails of empty lines', async () => {
    const order = await orderBehindBombs({ network: '198.51.100.7', addressee: 'project 2' })
    assert.ok(order.indexOf('invoice') <= 1, order.join())
  })

  test('another network to the same addressee waits for one of them at most', async () => {
    const order = await orderBehindBombs({ network: '198.51.100.7', addressee: 'project 1' })
    assert.ok(order.indexOf('invoice') <= 1, order.join())
  })
})

describe('the processor time of examiners', () => {
  const report = Buffer.from(plain)
  const outcomeFor = (examiners: AnalysisThreads, network: string, addressee: string) =>
    examiners.readReport(report, { network, addressee }).then(
      () => 'read',
      (error: PosternError) => error.code,
    )

  test('is charged to the network and to the addressee, and who has none left is refused', async () => {
    const { examiners } = examinersWith({ cpuMsPerNetwork: 0.001, cpuMsPerAddressee: 0.001, quietCpuMs: 0 })
    assert.equal(await outcomeFor(examiners, 'a', 'x'), 'read')
    assert.equal(await outcomeFor(examiners, 'a', 'y'), 'rate_limited')
    assert.equal(await outcomeFor(examiners, 'b', 'x'), 'rate_limited')
    assert.equal(await outcomeFor(examiners, 'b', 'y'), 'read')
    assert.ok(examiners.isSpent({ network: 'a' }) && !examiners.isSpent({ network: 'c' }))
  })

  test('of a flooded addressee is there for small mail of a quiet network, and not for long mail', async () => {
    const { examiners, examine } = examinersWith({ cpuMsPerAddressee: 0.001, quickLines: 10 })
    await examine(plain, { network: 'flood', addressee: 'x' })
    const long = mailToRead(`${plain}${'line\r\n'.repeat(20)}`)
    await assert.rejects(examiners.examine(long, { network: 'b', addressee: 'x' }), { code: 'rate_limited' })
    assert.equal(await outcomeFor(examiners, 'c', 'x'), 'read')
    assert.ok(!examiners.isSpent({ network: 'c', addressee: 'x' }))
  })

  test('of what was not refused yet when it came in is looked at again at its turn', async () => {
    const { examiners } = examinersWith({ cpuMsPerNetwork: 0.001 })
    const outcomes = await Promise.all(['x', 'y', 'z'].map((one) => outcomeFor(examiners, 'a', one)))
    assert.deepEqual(outcomes, ['read', 'rate_limited', 'rate_limited'])
  })

  test("has no limit for the operator's own mail servers", async () => {
    const { examiners } = examinersWith({ cpuMsPerNetwork: 0.001, cpuMsPerAddressee: 0.001 })
    for (let no = 0; no < 3; no++) {
      assert.ok(await examiners.readReport(report, { ...someone, isUnlimited: true }))
    }
  })
})
