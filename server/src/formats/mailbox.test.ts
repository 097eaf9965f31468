import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ParserTiming } from '../testing/harness/parser-timing.ts'
import { Chance, seed } from '../testing/harness/random.ts'
import type { Mailbox } from './content.ts'
import { readMailbox } from './mailbox.ts'

function accepted(text: string): Mailbox {
  const read = readMailbox(text)
  if ('fault' in read) assert.fail(`${text} ${read.fault}`)
  return read
}

function refused(text: string, why: RegExp): void {
  const read = readMailbox(text)
  if (!('fault' in read)) assert.fail(`${JSON.stringify(text)} was read as ${JSON.stringify(read)}`)
  assert.match(read.fault, why, text)
}

describe('a mailbox', () => {
  test('is an address, with or without a name', () => {
    assert.deepEqual(accepted('ada@example.com'), { name: null, address: 'ada@example.com' })
    assert.deepEqual(accepted('<ada@example.com>'), { name: null, address: 'ada@example.com' })
    assert.deepEqual(accepted('Ada <ada@Example.COM>'), { name: 'Ada', address: 'ada@example.com' })
    assert.deepEqual(accepted('Ada<ada@example.com>'), { name: 'Ada', address: 'ada@example.com' })
    assert.deepEqual(accepted('"" <ada@example.com>'), { name: null, address: 'ada@example.com' })
    assert.equal(accepted("Dr. Ada O'Neil & Co. <a@example.com>").name, "Dr. Ada O'Neil & Co.")
    assert.equal(accepted('アダ・ラブレス <a@example.com>').name, 'アダ・ラブレス')
    assert.equal(accepted('\u{1F469}\u200d\u{1F4BB} <a@example.com>').name, '\u{1F469}\u200d\u{1F4BB}')
  })

  test('can have any characters in a quoted name', () => {
    assert.equal(accepted('"Lovelace, Ada" <a@example.com>').name, 'Lovelace, Ada')
    assert.equal(accepted('"a \\"b\\" \\\\ c" <a@example.com>').name, 'a "b" \\ c')
    assert.equal(accepted('"a <b@example.org>" <a@example.com>').name, 'a <b@example.org>')
    assert.equal(accepted('"(),:;<>@[]" <a@example.com>').address, 'a@example.com')
  })

  test('cannot have list separators and other special characters in its name unless quoted', () => {
    for (const sign of '(),:;<>@[\\]"') {
      refused(`a ${sign} b <a@example.com>`, /quotes/)
      refused(`${sign} <a@example.com>`, /quotes/)
    }
    for (const text of [
      '"a <a@example.com>',
      '"a" b <a@example.com>',
      '"a\\" <a@example.com>',
      '" <a@example.com>',
    ]) {
      refused(text, /quotes/)
    }
  })

  test('is rejected if it has a line break or control character', () => {
    for (const sign of [
      '\r',
      '\n',
      '\r\n',
      '\0',
      '\t',
      '\x7f',
      '\x85',
      '\u2028',
      '\u2029',
      '\x1b',
      '\ud800',
    ]) {
      refused(`a${sign}b <a@example.com>`, /control character/)
      refused(`"a${sign}b" <a@example.com>`, /control character/)
      refused(`"a" ${sign}<a@example.com>`, /control character/)
      refused(`Ada <a${sign}b@example.com>`, /ASCII|before the @/)
      refused(`Ada <a@exa${sign}mple.com>`, /ASCII|domain name/)
      refused(`a@example.com${sign}`, /ASCII|domain name/)
    }
  })

  test('is rejected if its address is an encoded word', () => {
    for (const local of ['=?utf-8?q?ceo=40bank=2Eexample=3E?=', 'a.=?utf-8?b?YQ==?=', '=?']) {
      refused(`${local}@example.com`, /encoded word/)
      refused(`Ada <${local}@example.com>`, /encoded word/)
    }
    accepted('a=b?c@example.com')
  })

  test('is rejected if anything follows it', () => {
    for (const text of [
      'a@example.com, b@example.com',
      'Ada <a@example.com>, Bob <b@example.com>',
      'friends: a@example.com;',
      'Ada <a@example.com> (comment)',
      'Ada <a@example.com',
      'Ada a@example.com',
      'Ada a@example.com>',
      'Ada <<a@example.com>>',
      ' a@example.com',
      'a@example.com ',
      'Ada < a@example.com>',
      '',
      '>',
      '<>',
      'Ada <>',
    ]) {
      assert.ok('fault' in readMailbox(text), text)
    }
  })

  test('has each run of spaces in its name collapsed', () => {
    assert.equal(accepted(`  Ada${' '.repeat(300)}Lovelace  <a@example.com>`).name, 'Ada Lovelace')
    assert.equal(accepted(`" Ada${' '.repeat(300)}Lovelace " <a@example.com>`).name, 'Ada Lovelace')
  })

  test('has a limited length', () => {
    assert.equal(accepted(`${'x'.repeat(320)} <a@example.com>`).name?.length, 320)
    refused(`${'x'.repeat(321)} <a@example.com>`, /320/)
    refused(`${'x'.repeat(1000)} <a@example.com>`, /1000/)
  })
})

describe('a non-ASCII address', () => {
  test('has its domain in A-labels', () => {
    assert.equal(accepted('a@bücher.example').address, 'a@xn--bcher-kva.example')
    assert.equal(accepted('a@BÜCHER.example').address, 'a@xn--bcher-kva.example')
    assert.equal(accepted('a@пример.рф').address, 'a@xn--e1afmkfd.xn--p1ai')
    assert.equal(accepted('a@例え。テスト').address, 'a@xn--r8jz45g.xn--zckzah')
  })

  test('has normalized UTF-8 before the @', () => {
    assert.equal(accepted('jörg@example.com').address, 'jörg@example.com')
    assert.equal(accepted('jo\u0308rg@example.com').address, 'jörg@example.com')
    assert.equal(accepted('用户.名@例え.テスト').address, '用户.名@xn--r8jz45g.xn--zckzah')
    refused(`${'ö'.repeat(33)}@example.com`, /64 octets/)
    assert.equal(accepted(`${'ö'.repeat(32)}@example.com`).address.length, 44)
  })

  test('is rejected if it has invisible characters before the @', () => {
    for (const sign of [
      '\u00a0',
      '\u2003',
      '\u3000',
      '\u200b',
      '\u202e',
      '\ufeff',
      '\u00ad',
      '\ue000',
      '\u0378',
    ]) {
      refused(`ä${sign}b@example.com`, /before the @/)
    }
    for (const local of ['', '.ä', 'ä.', 'ä..b', '"ä"', 'ä b', 'ä<b', 'ä,b', 'ä@b']) {
      refused(`${local}@exämple.com`, /before the @/)
    }
  })

  test('is rejected if its domain has characters that a host parser interprets', () => {
    for (const domain of [
      'exämple.com/evil',
      'exämple.com\\evil',
      'exämple.com:25',
      'ä@example.com',
      'exämple.com?x',
      'exämple.com#x',
      '%65xämple.com',
      'exämple',
      'exämple.com.',
      '１２７.0.0.1',
      '０x7f.1',
      'ä.example.１',
      '［::1］',
      'exämple..com',
      'ex ämple.com',
      'xn--zzzzzzzzzzä.example',
      `${'ä'.repeat(64)}.example`,
    ]) {
      assert.ok('fault' in readMailbox(`x@${domain}`), domain)
    }
  })
})

test('any text is accepted or rejected quickly, and accepted mailboxes round-trip', (t) => {
  const chance = new Chance(seed)
  const pieces = [
    'a',
    'Z',
    '7',
    '.',
    '-',
    '@',
    'com',
    '<',
    '>',
    '"',
    '\\',
    ' ',
    ',',
    '\r',
    '\n',
    '\0',
    'ü',
    '名',
    '\u0308',
  ]
  const count = Number(process.env['POSTERN_TEST_INPUTS'] ?? 200_000)
  const piece = () => chance.pick(pieces)
  const some = (most: number) => Array.from({ length: chance.below(most) }, piece).join('')
  let found = 0
  const quickness = new ParserTiming()
  for (let n = 0; n < count; n++) {
    const text = chance.happens(0.5)
      ? `${some(4)}<${some(3)}@${some(3)}.com>`
      : `${some(3)}@${some(3)}.example`
    const read = quickness.of(text, () => readMailbox(text))
    if ('fault' in read) continue
    found++
    const { name, address } = read
    assert.doesNotMatch(`${name}${address}`, /[\r\n\0]/)
    assert.match(address, /^[^\s<>"@]+@[a-z0-9.-]+$/)
    const again = name === null ? address : `"${name.replace(/["\\]/g, '\\$&')}" <${address}>`
    assert.deepEqual(readMailbox(again), read, `${JSON.stringify(text)} (seed ${chance.seed})`)
  }
  assert.ok(found > count / 100, `only ${found} of ${count} were mailboxes`)
  t.diagnostic(`${count} texts, ${found} mailboxes, ${quickness}, seed ${chance.seed}`)

  for (const sign of ['"', '\\', '<', '>', '@', ' ', 'ä', 'ä.', '"\\']) {
    for (const text of [`${sign.repeat(900 / sign.length)}<a@b.c>`, sign.repeat(1e6)]) {
      quickness.of(text, () => readMailbox(text))
    }
  }
})
