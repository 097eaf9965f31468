import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ParserTiming } from '../testing/harness/parser-timing.ts'
import { referencesIn } from './references.ts'

const token = 'bounce-aebaaejcgncfkztxrcm2vo6m3xxp6aye2d5holtxls2bwl56'
const id = '01990000-0000-7000-8000-0123456789ab'
const sesId = '0107019a0b1c2d3e-6f1d2c3b-4a59-4687-9b0a-1c2d3e4f5a6b-000000'

describe('references in a text', () => {
  test('are tokens of return paths, wherever they are in an address', () => {
    for (const text of [
      token,
      `<${token}@bounces.customer.example>`,
      `Return-Path: ${token.toUpperCase()}@bounces.customer.example`,
      `X-Postern-Ref:\r\n ${token}`,
      `spf=pass (google.com: domain of ${token}@bounces.customer.example designates 192.0.2.1)`,
      `Return-Path: <SRS0=abcd=XY=bounces.customer.example=${token}@forwarder.example>`,
      `Original-Mail-From: ${token.slice(0, 30)}=\r\n${token.slice(30)}@bounces.customer.example`,
    ]) {
      const found = referencesIn(text)
      assert.deepEqual(found.tokens, [token], text)
      assert.deepEqual([found.messages, found.queueIds], [[], []], text)
    }
    for (const text of [token.slice(0, -1), `bounce-${'1'.repeat(48)}`, 'bounce-', '']) {
      assert.deepEqual(referencesIn(text).tokens, [], text)
    }
  })

  test('are ids of messages, in a Message-ID or an envelope id', () => {
    const found = (text: string) => referencesIn(text).messages
    assert.deepEqual(found(`Message-ID: <${id}@customer.example>`), [{ id, recipientNo: null }])
    assert.deepEqual(found(`Original-Envelope-Id: ${id}.3.4`), [{ id, recipientNo: 3 }])
    assert.deepEqual(found(`by mail.example.com with ESMTPS\r\n id ${id.toUpperCase()}; Tue`), [
      { id, recipientNo: null },
    ])
    // Another version, and parts of longer ids.
    for (const text of [`${id}-1`, `a${id}`, id.replace('-7', '-4'), sesId]) assert.deepEqual(found(text), [])
  })

  test('are queue ids of MTAs and of Amazon SES', () => {
    const found = (text: string) => referencesIn(text).queueIds
    assert.deepEqual(found('  4XbW5L3zqT\n'), ['4XbW5L3zqT'])
    assert.deepEqual(found('Received: by mx1.example.net (Postfix) id 4XbW5L3zqT; Sat, 14 Nov'), [
      '4XbW5L3zqT',
    ])
    assert.deepEqual(found('X-Postfix-Queue-ID: 4XbW5L2h1z\r\nX: y'), ['4XbW5L2h1z'])
    assert.deepEqual(found('250 2.0.0 Ok: queued as 4XbW5L2h1z'), ['4XbW5L2h1z'])
    assert.deepEqual(found('250 OK ids=8a54c1d2e3f4'), ['8a54c1d2e3f4'])
    assert.deepEqual(
      found('Nov 14 09:30:05 mx postfix/smtp[71]: 4XbW5L2h1z: to=<bob@example.org>, relay=x'),
      ['4XbW5L2h1z'],
    )
    assert.deepEqual(found('2026-11-14 09:30:05 1rXyz1-00000a-Ab => bob@example.org R=dnslookup'), [
      '1rXyz1-00000a-Ab',
    ])
    assert.deepEqual(found(`Message-ID: <${sesId}@eu-central-1.amazonses.com>`), [sesId])
    assert.deepEqual(found(sesId), [sesId])
  })

  test('are addresses of recipients, and otherwise all addresses, with the days', () => {
    const header = referencesIn(
      [
        'Delivered-To: bob@example.org',
        'From: Ada <ada@customer.example>',
        'To: Bob <Bob@Example.org>,',
        '\t"Carol" <carol@example.org>',
        'Date: Sat, 14 Nov 2026 23:30:05 -0800 (PST)',
      ].join('\r\n'),
    )
    assert.deepEqual(header.addresses, ['bob@example.org', 'carol@example.org'])
    assert.deepEqual(header.days, [new Date('2026-11-15')])
    const note = referencesIn('bob+news@example.org complained on 2026-11-14')
    assert.deepEqual(note.addresses, ['bob+news@example.org'])
    assert.deepEqual(note.days, [new Date('2026-11-14')])
    assert.deepEqual(referencesIn('2026-13-45 and 20261114').days, [])
  })

  test('are not the ids in the queries of URLs, which can be secrets', () => {
    for (const text of [
      'https://customer.example/reset?id=0123456789',
      'https://x.example/?a=1&id=0123456789',
    ])
      assert.deepEqual(referencesIn(text).queueIds, [], text)
  })

  test('never contain a token as another reference', () => {
    // A line break in the token that is not a soft one.
    assert.deepEqual(
      referencesIn(`Return-Path: boun\nce-${token.slice(7)}@bounces.customer.example`).addresses,
      [],
    )
    for (const text of [token, `id ${token}`, `queued as ${token}`, `to ${token}@bounces.customer.example`]) {
      const { queueIds, addresses } = referencesIn(text)
      assert.deepEqual([queueIds, addresses], [[], []], text)
    }
  })

  test('are bounded in number, and found in linear time in hostile text', (t) => {
    const timing = new ParserTiming()
    const many = (part: (n: number) => string) =>
      Array.from({ length: 65_536 }, (_none, n) => part(n))
        .join('')
        .slice(0, 65_536)
    const hostile = [
      many(() => 'bounce-'),
      many(() => '<'),
      many(() => '\n'),
      many(() => 'a\n'),
      many(() => 'abcde\n'),
      many(() => 'a'),
      many(() => '-'),
      many(() => `${'!'.repeat(64)}@${'a'.repeat(63)}`),
      many(() => `${'a'.repeat(64)}@${'a'.repeat(40)}`),
      many(() => `date:${'('.repeat(95)}\n`),
      many(() => '='),
      many(() => ' \t'),
      many(() => '\r\n '),
      many(() => '=\r\n'),
      many(() => 'a@'),
      many(() => '!'),
      many(() => 'a.'),
      many(() => 'id '),
      many(() => 'queue-id:'),
      many(() => '('),
      many(() => 'date:'),
      many(() => '01990000-'),
      many(() => ']: '),
      many(
        (n) =>
          `id ${n}abcde\nto: x${n}@example.net 20${10 + (n % 90)}-01-01\n${id.slice(0, -6)}${String(n).padStart(6, '0')}\n`,
      ),
    ]
    for (const text of hostile) {
      const found = timing.of(text, () => referencesIn(text))
      assert.ok(found.tokens.length <= 2_000)
      assert.ok(found.messages.length <= 50 && found.queueIds.length <= 50)
      assert.ok(found.addresses.length <= 10 && found.days.length <= 5)
    }
    t.diagnostic(String(timing))
  })
})
