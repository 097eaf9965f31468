import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { cleanUp } from '../../testing/cleanup.ts'
import { startDns } from '../../testing/dns.ts'
import { Examiners } from './examiners.ts'

/** Threads that judge and read mail, and what becomes of one that would take for ever. */
const dns = await startDns({
  '.': [{ name: 'example.com', type: 'TXT', value: 'v=spf1 ip4:192.0.2.1 -all' }],
})

function examinersWith(limits: NonNullable<ConstructorParameters<typeof Examiners>[0]['limits']> = {}) {
  const examiners = new Examiners({ dns: { servers: [dns.server] }, limits })
  cleanUp(() => examiners.close())
  const examine = (text: string) =>
    examiners.examine({
      raw: Buffer.from(text),
      client: { ip: '192.0.2.1', helo: 'mta.example.com', sender: 'ada@example.com' },
      ...{ name: 'mx.example.net', forwards: [], isParsed: true },
    })
  return { examiners, examine }
}

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
})
