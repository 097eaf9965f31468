import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { dkimResult, makeDkimPair } from '../testing/fixtures/dkim.ts'
import { mutated } from '../testing/fixtures/hostile-mail.ts'
import { ParserTiming } from '../testing/harness/parser-timing.ts'
import { Chance } from '../testing/harness/random.ts'
import { makeMime } from './composer-threads.ts'
import { completeMime, hasUtf8Header, readSubmitted, type Submitted } from './submitted.ts'

/** Parsing and completing messages that customers composed. */
const arrival = { allowsUtf8: false, host: 'mail.example.net', at: new Date('2026-11-15T12:00:00Z') }
const composition = {
  messageId: '0190a5b2-7c1d-7e3f-8a4b-5c6d7e8f9a0b',
  domain: 'shop.example.org',
  date: new Date('2026-11-15T12:00:01Z'),
  ref: 'bounce-abc',
}

const plain = [
  'From: Shop <orders@shop.example.org>',
  'To: Anna <anna@example.net>, "Lovelace, Ada" <ada@example.net>',
  'Cc: team: bob@example.net, eve@xn--bcher-kva.example;',
  'Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?= from\r\n the shop',
]

const mailOf = (fields: readonly string[], body = 'Hello\r\n'): Buffer =>
  Buffer.from(`${fields.join('\r\n')}\r\n\r\n${body}`)

const read = (raw: Buffer | readonly string[], changes = {}) =>
  readSubmitted(Buffer.isBuffer(raw) ? raw : mailOf(raw), { ...arrival, ...changes })

function good(raw: Buffer | readonly string[], changes = {}): Submitted {
  const found = read(raw, changes)
  assert.ok(!('fault' in found), 'fault' in found ? found.fault : '')
  return found
}

function faultOf(raw: Buffer | readonly string[], changes = {}): string {
  const found = read(raw, changes)
  assert.ok('fault' in found, 'it was accepted')
  return found.fault
}

const namesOf = (mime: Buffer): string[] =>
  (mime.toString('latin1').split('\r\n\r\n')[0] ?? '')
    .split(/\r\n(?![ \t])/)
    .map((field) => field.slice(0, field.indexOf(':')).toLowerCase())

describe('a submitted message', () => {
  test('is parsed into its sender, subject and displayed recipients', () => {
    const { from, subject, to, cc } = good(plain)
    assert.deepEqual(from, { name: 'Shop', address: 'orders@shop.example.org' })
    assert.equal(subject, 'Grüße from the shop')
    assert.deepEqual([...to], ['anna@example.net', 'ada@example.net'])
    assert.deepEqual([...cc], ['bob@example.net', 'eve@xn--bcher-kva.example'])
  })

  test('keeps every octet of its body and of the remaining fields', () => {
    const body = 'a\r\n.\r\n..\r\n \r\n\t\xe9\r\n\r\n\r\n'
    const raw = Buffer.from(
      `X-Odd:   two  spaces\t\r\n\tfolded \r\n${plain.join('\r\n')}\r\n\r\n${body}`,
      'latin1',
    )
    const { mime } = good(raw)
    const text = mime.toString('latin1')
    assert.ok(
      text.endsWith(`\r\nX-Odd:   two  spaces\t\r\n\tfolded \r\n${plain.join('\r\n')}\r\n\r\n${body}`),
    )
    assert.match(
      text,
      /^Received: from submission by mail\.example\.net with ESMTPSA;\r\n Sun, 15 Nov 2026 12:00:00 \+0000\r\n/,
    )
  })

  test('has its sender on the first line of From, however long its words are', () => {
    for (const from of [
      `${'a'.repeat(64)}@bounces.customer.example`,
      `${'b'.repeat(120)} <ada@example.com>`,
      `Shop <${'a'.repeat(64)}@${'b'.repeat(60)}.${'c'.repeat(60)}.example>`,
    ]) {
      const [first = '', second = ''] = from.split(' ')
      const { mime } = good([`From: ${from}`, 'Subject: Hello'])
      assert.match(mime.toString(), new RegExp(`\r\nFrom: ${first}`))
      assert.ok(mime.toString().replaceAll('\r\n ', ' ').includes(second))
    }
  })

  test('has Bcc, Sender and reserved fields removed', () => {
    const gone = [
      'Bcc: secret@example.net',
      'BCC:',
      'Sender: ceo@bank.example',
      'Return-Path: <x@example.net>',
      'X-Postern-Ref: forged',
      'X-Postern-Anything: x',
      'X-SES-Configuration-Set: x',
      'DKIM-Signature: v=1; d=shop.example.org;\r\n b=abc',
      'Authentication-Results: mx; dkim=pass',
      'ARC-Seal: i=1',
      'Resent-Bcc: secret@example.net',
      'Disposition-Notification-To: victim@example.net',
      'Date:',
      'Message-ID: ',
    ]
    const { mime } = good([...gone, ...plain, 'Received: from a by b; Sun, 15 Nov 2026 11:00:00 +0000'])
    assert.deepEqual(namesOf(mime), ['received', 'from', 'to', 'cc', 'subject', 'received'])
    assert.doesNotMatch(mime.toString(), /secret|forged|victim|ceo/)
  })

  test('can contain tags and metadata, which are removed', () => {
    const { tags, metadata, mime } = good([
      ...plain,
      'X-Postern-Tag: order, welcome',
      'X-Postern-Tag: again',
      'X-Postern-Metadata: order = 4711=a',
      'X-Postern-Metadata: name==?utf-8?q?J=C3=B6rg?=',
    ])
    assert.deepEqual(tags, ['order', 'welcome', 'again'])
    assert.deepEqual(metadata, [
      ['order', '4711=a'],
      ['name', 'Jörg'],
    ])
    assert.doesNotMatch(mime.toString(), /postern/i)
  })

  test('can have a From in the obsolete form', () => {
    assert.deepEqual(good(['From: root@shop.example.org (Cron Daemon)']).from, {
      name: 'Cron Daemon',
      address: 'root@shop.example.org',
    })
  })

  test('has its From rewritten as in composed mail', () => {
    for (const [written, sent] of [
      ['root@shop.example.org (Cron Daemon)', 'Cron Daemon <root@shop.example.org>'],
      ['=?utf-8?q?J=C3=B6rg?= <a@b.example>', '=?UTF-8?Q?J=C3=B6rg?= <a@b.example>'],
      ['"=?utf-8?q?J=C3=B6rg?=" <a@b.example>', '=?UTF-8?Q?J=C3=B6rg?= <a@b.example>'],
      ['=?utf-8?q?=3Cceo=40bank=2Eexample=3E?= <a@b.example>', '"<ceo@bank.example>" <a@b.example>'],
      ['"Lovelace,\r\n Ada"  <a@B.example>', '"Lovelace, Ada" <a@b.example>'],
      ['=?utf-8?q?a=0D=0AX=3A_b?= <a@b.example>', '"a X: b" <a@b.example>'],
    ] as const) {
      const [field] = /^From:.*(?:\r\n .*)*/m.exec(good([`from: ${written}`]).mime.toString()) ?? []
      assert.equal(field, `From: ${sent}`)
    }
  })

  test('has a long To parsed up to a limit, without truncating an address', () => {
    const many = Array.from({ length: 1000 }, (_, n) => `person${n}@example.net`)
    const { to } = good([...plain.slice(0, 1), `To: ${many.join(',\r\n ')}`])
    assert.ok(to.size > 300 && to.size < 1000, String(to.size))
    assert.deepEqual([...to], many.slice(0, to.size))
  })

  test('can omit the body and the empty line before it', () => {
    for (const raw of ['From: a@b.example\r\n\r\n', 'From: a@b.example\r\n', 'From: a@b.example']) {
      assert.match(good(Buffer.from(raw)).mime.toString(), /\r\nFrom: a@b\.example\r\n\r\n$/)
    }
  })
})

describe('a submitted message is rejected', () => {
  const faults: Record<string, [RegExp, string | readonly string[]]> = {
    'without From': [/no From/, ['To: a@b.example']],
    'with two From fields': [/more than one From/, [...plain, 'from: eve@evil.example']],
    'with two addresses in From': [/^From /, ['From: a@b.example, eve@evil.example']],
    'with a group in From': [/^From /, ['From: team: a@b.example;']],
    'with a name that is an address': [/^From /, ['From: ceo@bank.example <a@b.example>']],
    'with an address in a comment of From': [/^From /, ['From: a@b.example (<ceo@bank.example>)']],
    'with a list in a comment of From': [/^From /, ['From: a@b.example (, CEO <ceo@bank.example>)']],
    'with an encoded word as its address': [
      /^From .*encoded word/,
      ['From: =?utf-8?q?ceo=40bank.example=3E?=@b.example'],
    ],
    'with two addresses in brackets': [/^From /, ['From: <ceo@bank.example> <a@b.example>']],
    'with an address behind a comment': [/^From /, ['From: (a) ceo@bank.example (b)']],
    'with nothing in From': [/^From /, ['From:']],
    'with two subjects': [/more than one subject/, [...plain, 'SUBJECT: other']],
    'with two To fields': [/more than one to/, [...plain, 'To: other@example.net']],
    'with two content types': [
      /more than one content-type/,
      [...plain, 'Content-Type: a/b', 'Content-type: c/d'],
    ],
    'with a space before the colon': [/not a field/, [...plain, 'Subject : other']],
    'with a line that is not a field': [/not a field/, ['From ada Sun Nov 15', ...plain]],
    'with a first line that is folded': [/begins with a space/, [' x', ...plain]],
    'with a line of spaces in the header': [/blank continuation line/, [...plain, 'X: a\r\n \t\r\n b']],
    'with a control character in the header': [/control character/, [...plain, 'X: a\x07b']],
    'with a NUL': [/control/, [...plain, 'X: a\0b']],
    'with a bare LF': [/bare CR or LF/, [...plain, 'X: a\nBcc: b@example.net']],
    'with a bare CR': [/bare CR or LF/, [...plain, 'X: a\rBcc: b@example.net']],
    'with a line that is too long': [/998 octets/, [...plain, `X: ${'a'.repeat(996)}`]],
    'with a header that is too long': [/64 KiB/, [...plain, ...Array(1000).fill(`X: ${'a'.repeat(70)}`)]],
    'with too many fields': [/1000 fields/, [...plain, ...Array(1000).fill('X: a')]],
    'after too many hops': [/Routing loop/, [...plain, ...Array(50).fill('Received: x')]],
    'with a header that is not ASCII': [/not ASCII/, [...plain, 'X: ü']],
  }
  for (const [when, [words, fields]] of Object.entries(faults)) {
    test(when, () => assert.match(faultOf(mailOf(fields as string[])), words))
  }

  test('with a bare LF, a bare CR, a NUL or a line that is too long in its body', () => {
    for (const piece of ['a\nb', 'a\rb', 'a\0b', 'a\r', 'x'.repeat(999)]) {
      assert.match(faultOf(mailOf(plain, `${piece}\r\n`)), /bare|NUL|998/)
    }
    good(mailOf(plain, `${'x'.repeat(998)}\r\n`))
  })

  test('but its sender is returned if it can be parsed, so that permissions can be checked first', () => {
    const found = read([...plain, 'Subject: two'])
    assert.ok('fault' in found && found.from?.address === 'orders@shop.example.org')
  })

  test('with a Unicode control character or line ending in any field, even if UTF-8 is allowed', () => {
    for (const sign of ['\x80', '\x85', '\x9f', '\u2028', '\u2029']) {
      for (const field of ['Subject', 'X-Other', 'Reply-To']) {
        const raw = [...plain.slice(0, 1), `${field}: ü${sign}Bcc: b@example.net`]
        assert.match(faultOf(raw, { allowsUtf8: true }), /control character/)
      }
    }
    good([...plain, 'X-Other: über\r\n\tuns'], { allowsUtf8: true })
  })

  test('with a header that is neither ASCII nor UTF-8, even if UTF-8 is allowed', () => {
    const raw = Buffer.from('From: a@b.example\r\nSubject: \xfc\r\n\r\n', 'latin1')
    assert.match(faultOf(raw, { allowsUtf8: true }), /neither/)
    const { from, mime } = good(['From: jörg@bücher.example'], { allowsUtf8: true })
    assert.equal(from.address, 'jörg@xn--bcher-kva.example')
    assert.ok(hasUtf8Header(mime))
    assert.ok(!hasUtf8Header(good(mailOf(plain, 'ü\r\n')).mime))
  })
})

describe('a submitted message that is sent', () => {
  test('gets the missing fields and keeps the existing ones', () => {
    const completed = completeMime(good(plain).mime, composition).toString()
    assert.match(completed, /\r\nDate: Sun, 15 Nov 2026 12:00:01 \+0000\r\n/)
    assert.match(completed, /\r\nMessage-ID: <0190a5b2-7c1d-7e3f-8a4b-5c6d7e8f9a0b@shop\.example\.org>\r\n/)
    assert.match(completed, /\r\nX-Postern-Ref: bounce-abc\r\n\r\nHello\r\n$/)
    const own = [...plain, 'Date: Sat, 14 Nov 2026 00:00:00 +0000', 'Message-ID: <a@b>']
    const names = namesOf(completeMime(good(own).mime, composition))
    assert.equal(new Set(names).size, names.length)
  })

  test('is signed like a composed message, with no room for a second From, To or Subject', async () => {
    const { mime } = good([...plain, 'Content-Type: text/plain; charset=utf-8'], {})
    const { key, record } = makeDkimPair('shop.example.org')
    const signed = await makeMime({ content: { mime }, composition, key })
    assert.equal(await dkimResult(signed, record), 'pass')
    for (const field of [
      'From',
      'To',
      'Subject',
      'Date',
      'Message-ID',
      'Reply-To',
      'Content-Type',
      'Content-Transfer-Encoding',
    ]) {
      const more = Buffer.concat([Buffer.from(`${field}: eve@evil.example\r\n`), signed])
      assert.equal(await dkimResult(more, record), 'fail', field)
    }
  })

  test('can always be completed after acceptance, even at the size limits', () => {
    const from = `From: ${'ü'.repeat(300)} <a@b.example>`
    const fields = [from, ...Array(999).fill('X: a')]
    const long = [from, ...Array(70).fill(`X: ${'a'.repeat(900)}`)]
    const rest = 64 * 1024 - mailOf(long, '').length
    const largest = [...long, ...Array(6).fill(`X: ${'a'.repeat(Math.floor(rest / 6) - 5)}`)]
    for (const each of [fields, largest]) {
      const { mime } = good(each, { allowsUtf8: true })
      assert.match(completeMime(mime, composition).toString('latin1'), /\r\nX-Postern-Ref: bounce-abc\r\n/)
    }
    faultOf([...fields, 'X: a'], { allowsUtf8: true })
    faultOf([...largest, 'X: aaaaaaaaaaaaaaa'], { allowsUtf8: true })
  })

  test('is rejected if it was not validated', () => {
    assert.throws(
      () => completeMime(Buffer.from('From: a@b.example\r\n\r\na\n.\nb'), composition),
      /bare CR or LF/,
    )
  })
})

describe('hostile mail', () => {
  test('is rejected, or has one From, no Bcc and complete lines', (t) => {
    const chance = new Chance(Number(process.env['SEED'] ?? 8))
    let taken = 0
    for (let n = 0; n < 20_000; n++) {
      const raw = mutated(
        mailOf([...plain, 'Bcc: secret@example.net', 'X-Postern-Ref: forged', 'Message-ID: <a@b>']),
        chance,
      )
      const found = read(raw, { allowsUtf8: chance.below(2) === 0 })
      if ('fault' in found) continue
      taken++
      const text = completeMime(found.mime, composition).toString('latin1')
      assert.doesNotMatch(text, /(?<!\r)\n|\r(?!\n)|\0/)
      const names = namesOf(Buffer.from(text, 'latin1'))
      for (const name of ['from', 'date', 'message-id', 'x-postern-ref']) {
        assert.equal(
          names.filter((one) => one === name).length,
          1,
          `${name}: ${JSON.stringify(raw.toString('latin1'))}`,
        )
      }
      assert.ok(!names.includes('bcc') && names.every((name) => /^[\x21-\x39\x3b-\x7e]+$/.test(name)))
    }
    t.diagnostic(`${taken} of 20,000 were taken`)
    assert.ok(taken > 1000)
  })

  test('is parsed quickly, however it is crafted', (t) => {
    const of = (piece: string, times: number, field = 'To') =>
      mailOf([...(field === 'From' ? [] : plain.slice(0, 1)), `${field}: ${piece.repeat(times)}x`])
    const folded = (piece: string, field = 'To', lines = 68) =>
      of(`${piece.repeat(Math.floor(900 / piece.length))}\r\n `, lines, field)
    const slow: [string, Buffer][] = [
      ['25 MiB of header', Buffer.alloc(25 * 1024 * 1024, 'X: a\r\n')],
      ['100,000 fields', mailOf([...plain, ...Array(100_000).fill('X: a')])],
      ['100,000 folds', of('a\r\n ', 100_000, 'X')],
      ...[
        '(',
        '"',
        '<',
        'a:',
        'a,',
        'a;',
        'a:b;',
        'a@b,',
        ':',
        ';',
        '\\',
        ',',
        '@',
        '=?utf-8?q?a?= ',
        '=?',
        ' ',
        '\t',
        'a ',
      ].map((piece): [string, Buffer] => [`To of ${piece}`, folded(piece)]),
      ...['=?utf-8?q?a?= ', '=?utf-8?q?a?=,', '=?utf-8?b?', '=?', '?=', '=?utf-8?q?', ' ='].map(
        (piece): [string, Buffer] => [`Subject of ${piece}`, folded(piece, 'Subject')],
      ),
      [
        'To, Cc and metadata',
        Buffer.concat([
          ...['To', 'Cc'].map((field) =>
            Buffer.from(`${field}: ${`${'a:'.repeat(450)}\r\n `.repeat(9)}a\r\n`),
          ),
          ...Array(50).fill(Buffer.from(`X-Postern-Metadata: ${'=?utf-8?q?a?=,'.repeat(65)}\r\n`)),
          mailOf(plain.slice(0, 1)),
        ]),
      ],
      // Exceeds the size limit, so it is not parsed.
      ...['a:', 'a,', ':'].map((piece): [string, Buffer] => [
        `240 KiB of ${piece}`,
        folded(piece, 'To', 270),
      ]),
      ['From of (', of('(', 900, 'From')],
    ]
    const quickness = new ParserTiming(100)
    for (const [what, raw] of slow) quickness.of(what, () => read(raw))
    t.diagnostic(`${quickness}`)
  })

  test('of 25 MiB is parsed quickly', (t) => {
    const raw = mailOf(plain, `${'x'.repeat(76)}\r\n`.repeat(330_000))
    const quickness = new ParserTiming(300)
    quickness.of('25 MiB', () => good(raw))
    t.diagnostic(`${quickness}`)
  })
})
