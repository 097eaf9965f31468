import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { describe, test } from 'node:test'
import { dkimResult, makeDkimPair } from '../testing/fixtures/dkim.ts'
import { Chance, seed } from '../testing/harness/random.ts'
import { composeMime } from './compose.ts'
import type { Content } from './content.ts'
import { signMime } from './sign.ts'

const { key, record } = makeDkimPair()
const composition = {
  messageId: '0190a5b2-7c1d-7e3f-8a4b-5c6d7e8f9a0b',
  domain: 'example.com',
  date: new Date('2026-11-14T09:30:00Z'),
}
const content: Content = {
  from: { name: 'Jörg', address: 'ada@example.com' },
  to: [{ name: null, address: 'bob@example.org' }],
  cc: [],
  reply_to: [],
  subject: 'Hello',
  text: 'Hello,   Bob. \n\n\n',
  html: null,
  headers: [],
  attachments: [],
}
const compose = (change: Partial<Content> = {}) => composeMime({ ...content, ...change }, composition)

const changed = (mail: Buffer, from: string, to: string): Buffer => {
  const text = mail.toString('latin1')
  assert.ok(text.includes(from))
  return Buffer.from(text.replace(from, to), 'latin1')
}

describe('a signature', () => {
  test('is prepended to the message and is valid', async () => {
    for (const change of [
      {},
      { text: null, html: '<p>ü</p>' },
      { text: null },
      { text: 'x\n'.repeat(20_000), html: `${'ü'.repeat(50_000)}\n\n\n` },
      { to: [{ name: 'Jörg', address: 'jörg@xn--bcher-kva.example' }] },
      {
        reply_to: [content.from],
        cc: [content.from],
        headers: [{ name: 'References', value: '<a@b> <c@d>' }],
      },
      {
        attachments: [
          { filename: 'ü.pdf', content_type: 'application/pdf', content: 'AAAA', content_id: null },
        ],
      },
    ]) {
      const mime = await compose(change)
      const signed = await signMime(mime, key)
      assert.deepEqual(signed.subarray(signed.length - mime.length), mime)
      assert.match(
        signed.toString('latin1'),
        /^DKIM-Signature: v=1; a=rsa-sha256; c=relaxed\/relaxed;\s+d=example\.com;/,
      )
      assert.equal(await dkimResult(signed, record), 'pass')
    }
  })

  test('is valid regardless of spaces, folding and empty lines in the message', async (t) => {
    const chance = new Chance(seed)
    const text = (pieces: readonly string[], most: number) =>
      Array.from({ length: chance.below(most) }, () => chance.pick(pieces)).join('')
    for (let round = 0; round < 300; round++) {
      const value = () => text(['a', ' ', '  ', '\t', '\r\n ', '\r\n\t ', '\xfc', ';', ':'], 12)
      const names = ['Subject', 'X-Other', 'References', 'reply-to', 'TO ']
      const more = Array.from({ length: chance.below(8) }, () => chance.pick(names))
      const header = [`From: a@example.com${value()}x`, ...more.map((name) => `${name}:${value()}x`)]
      const body = text(['a', 'b ', ' ', '\t', '  \t', '\r\n', '\r\n\r\n', '.', '\xfc'], 40)
      const mime = Buffer.from(`${header.join('\r\n')}\r\n\r\n${body}`, 'latin1')
      const result = await dkimResult(await signMime(mime, key), record)
      assert.equal(
        result,
        'pass',
        `seed ${chance.seed}, round ${round}: ${JSON.stringify(mime.toString('latin1'))}`,
      )
    }
    t.diagnostic(`seed ${chance.seed}`)
  })

  test('is invalid after any visible change', async () => {
    const signed = await signMime(
      await compose({ headers: [{ name: 'List-Unsubscribe', value: '<https://a.example/>' }] }),
      key,
    )
    for (const [from, to] of [
      ['Hello,', 'Bye,'],
      ['Subject: Hello', 'Subject: Bye'],
      ['bob@example.org', 'eve@example.org'],
      ['a.example', 'b.example'],
      ['text/plain', 'text/html'],
      ['0190a5b2', '0190a5b3'],
      ['14 Nov', '15 Nov'],
    ] as const) {
      assert.equal(await dkimResult(changed(signed, from, to), record), 'fail', from)
    }
    assert.equal(await dkimResult(signed, makeDkimPair().record), 'fail')
  })

  test('is invalid after a field that readers display is added, whether or not the message already had one', async () => {
    const signed = await signMime(await compose(), key)
    // As a client might submit it: without a body encoding.
    const bare = await signMime(Buffer.from('From: a@example.com\r\n\r\nHello\r\n'), key)
    assert.equal(await dkimResult(bare, record), 'pass')
    for (const name of [
      ['From', 'To', 'Cc', 'Subject', 'Date', 'Message-ID', 'Reply-To'],
      ['MIME-Version', 'Content-Type', 'Content-Transfer-Encoding'],
      ['List-Unsubscribe', 'List-Unsubscribe-Post'],
    ].flat()) {
      for (const mail of [signed, bare]) {
        const added = Buffer.concat([Buffer.from(`${name}: x@evil.example\r\n`), mail])
        assert.equal(await dkimResult(added, record), 'fail', name)
      }
    }
    const harmless = Buffer.concat([Buffer.from('Received: from a by b\r\nX-Spam: no\r\n'), signed])
    assert.equal(await dkimResult(harmless, record), 'pass')
  })

  test('contains its signing time and is deterministic for that time', async () => {
    const mime = await compose()
    const time = new Date('2026-11-14T10:00:00Z')
    const signed = await signMime(mime, key, time)
    assert.match(signed.toString('latin1'), /; *\s*t=1794650400;/)
    assert.deepEqual(await signMime(mime, key, time), signed)
    assert.notDeepEqual(await signMime(mime, key, new Date('2026-11-14T10:00:01Z')), signed)
  })

  test('is never omitted: signing fails if it cannot be created', async () => {
    const mime = await compose()
    await assert.rejects(signMime(mime, { ...key, privateKey: 'none' }), /no signature by postern-1/)
    await assert.rejects(signMime(mime, { ...key, domain: 'a; d=b.example' }), /no signature/)
    await assert.rejects(signMime(mime, { ...key, selector: 'a\r\nBcc: x' }), /no signature/)
    await assert.rejects(signMime(Buffer.from('Subject: x\r\n\r\n'), key), /no signature/)
    const { privateKey } = generateKeyPairSync('ed25519', {
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    })
    await assert.rejects(signMime(mime, { ...key, privateKey }), /no signature/)
  })
})
