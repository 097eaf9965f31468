import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ParserTiming } from '../testing/harness/parser-timing.ts'
import { Chance, seed } from '../testing/harness/random.ts'
import { type Address, addressText, lowerCased, readAddress } from './address.ts'

function accepted(text: string): Address {
  const read = readAddress(text)
  if ('fault' in read) assert.fail(`${text} ${read.fault}`)
  return read
}

function refused(text: string, why: RegExp): void {
  const read = readAddress(text)
  if (!('fault' in read)) assert.fail(`${JSON.stringify(text)} was read as ${JSON.stringify(read)}`)
  assert.match(read.fault, why, text)
}

describe('an address', () => {
  test('consists of a local part and a lower-case domain', () => {
    assert.deepEqual(accepted('Support@Example.COM'), { local: 'Support', domain: 'example.com' })
    assert.deepEqual(lowerCased(accepted('Support@Example.COM')), { local: 'support', domain: 'example.com' })
    assert.equal(addressText(accepted('Support@Example.COM')), 'Support@example.com')
  })

  test('can have any RFC 5322 atom character and single dots before the @', () => {
    for (const sign of "!#$%&'*+-/=?^_`{|}~0aZ") {
      assert.equal(accepted(`${sign}@example.com`).local, sign)
      assert.equal(accepted(`a.${sign}.b${sign}@example.com`).local, `a.${sign}.b${sign}`)
    }
    for (const text of ['a.b.c@example.com', 'a+tag@example.com', '1@example.com', '-@example.com']) {
      assert.equal(addressText(accepted(text)), text)
    }
  })

  test('is rejected if it has other characters, or leading, trailing or consecutive dots, before the @', () => {
    for (const sign of '"(),:;<>[\\]') {
      for (const local of [sign, `a${sign}`, `${sign}a`, `a${sign}b`]) {
        refused(`${local}@example.com`, /before the @/)
      }
    }
    for (const local of ['', '.', '.a', 'a.', 'a..b', '..']) refused(`${local}@example.com`, /before the @/)
    for (const local of ['"a b"', '"a"', '"a@b"', 'a@b', '@', 'a@'])
      refused(`${local}@example.com`, /before the @|ASCII/)
  })

  test('is rejected if it has spaces, control characters or non-ASCII characters', () => {
    for (const text of [
      ' a@example.com',
      'a@example.com ',
      'a b@example.com',
      'a@exam ple.com',
      'a@example.com\r\nRCPT TO:<b@example.com>',
      'a\n@example.com',
      'a@example.com\n',
      'a\0@example.com',
      'a\x7f@example.com',
      'ä@example.com',
      'a@bücher.example',
      'a@example。com',
      'a＠example.com',
      '\u{1F4A9}@example.com',
      '\ud800@example.com',
      // In lower case, these two letters become k and i with a dot, so the name would imitate another ASCII
      // name.
      'a@\u212aestrel.example',
      'a@\u0130stanbul.example',
    ]) {
      refused(text, /ASCII/)
    }
  })

  test('has a host name after the @: dot-separated labels of letters, digits and inner hyphens', () => {
    for (const domain of [
      'example.com',
      'a.b',
      'a.b.c.d.e',
      'xn--bcher-kva.example',
      'example.xn--p1ai',
      '1.example',
      '1.2.3.com',
      'a-b.example',
      'a--b.example',
      `${'a'.repeat(63)}.example`,
    ]) {
      assert.equal(accepted(`x@${domain}`).domain, domain)
    }
    for (const domain of [
      '',
      '.',
      'localhost',
      'example',
      '.example.com',
      'example.com.',
      'example..com',
      '-a.example',
      'a-.example',
      'a_b.example',
      'exa!mple.com',
      `${'a'.repeat(64)}.example`,
      '127.0.0.1',
      '127.0.0.0x1',
      '127.0.0.0x',
      '1.2',
      'example.123',
      '[127.0.0.1]',
      '[IPv6:::1]',
      'example.com:25',
      'example.com>',
      'example.com(comment)',
      'example.com/',
      '%65xample.com',
    ]) {
      refused(`x@${domain}`, /domain name after the @/)
    }
  })

  test('is rejected if it has no @ or has a display name', () => {
    for (const text of ['', 'a', 'example.com', 'a.example.com']) refused(text, /no @/)
    refused('<a@example.com>', /before the @|domain name/)
    refused('Ada<a@example.com>', /before the @|domain name/)
    refused('mailto:a@example.com', /before the @/)
    refused('@relay.example:a@example.com', /before the @/)
  })

  test('is limited to the length that SMTP allows', () => {
    const local = 'a'.repeat(64)
    // 254 in total: 64, the @, and 189.
    const domain = `${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(57)}.com`
    assert.equal(`${local}@${domain}`.length, 254)
    assert.equal(addressText(accepted(`${local}@${domain}`)), `${local}@${domain}`)
    refused(`${local}@b${domain}`, /254/)
    refused(`${local}@${'x'.repeat(255)}`, /254/)
    refused(`a${local}@example.com`, /64 characters before/)
    assert.equal(accepted(`${local}@example.com`).local.length, 64)
  })
})

/** An independent implementation without regular expressions. */
function isAddress(text: string): boolean {
  const at = text.lastIndexOf('@')
  if (at < 1 || at > 64 || text.length > 254) return false
  const isLetterOrDigit = (sign: string) =>
    (sign >= 'a' && sign <= 'z') || (sign >= 'A' && sign <= 'Z') || (sign >= '0' && sign <= '9')
  const atoms = text.slice(0, at).split('.')
  const isAtom = (atom: string) =>
    atom !== '' && [...atom].every((sign) => isLetterOrDigit(sign) || "!#$%&'*+-/=?^_`{|}~".includes(sign))
  const labels = text.slice(at + 1).split('.')
  const isLabel = (part: string) =>
    part !== '' &&
    part.length <= 63 &&
    [...part].every((sign) => isLetterOrDigit(sign) || sign === '-') &&
    !part.startsWith('-') &&
    !part.endsWith('-')
  const isNumber = [...(labels.at(-1) ?? '')].every((sign) => sign >= '0' && sign <= '9')
  return atoms.every(isAtom) && labels.length > 1 && labels.every(isLabel) && !isNumber
}

test('any text is accepted or rejected quickly, matching an independent implementation', (t) => {
  const chance = new Chance(seed)
  const pieces = ['a', 'b', 'Z', '7', '09', '.', '.', '-', '@', 'com', 'xn--p1ai', '+', '_', '"', '\n', 'ü']
  const pick = () => chance.pick(pieces)
  const count = Number(process.env['POSTERN_TEST_INPUTS'] ?? 100_000)
  let found = 0
  for (let n = 0; n < count; n++) {
    const half = () => Array.from({ length: 1 + chance.below(4) }, pick).join('')
    const text = chance.happens(0.8) ? `${half()}@${half()}.com` : half()
    const read = readAddress(text)
    const isRead = !('fault' in read)
    assert.equal(isRead, isAddress(text), `${JSON.stringify(text)} (seed ${chance.seed})`)
    if (!isRead) continue
    found++
    // Formatting a parsed address and parsing it again returns the same address.
    assert.deepEqual(readAddress(addressText(read)), read)
    assert.equal(addressText(read).toLowerCase(), text.toLowerCase())
  }
  assert.ok(found > count / 100, `only ${found} of ${count} were addresses`)

  const quickness = new ParserTiming()
  for (const long of ['a.'.repeat(1e6), '@'.repeat(1e6), `${'a'.repeat(1e6)}@`, `a@${'a-'.repeat(1e6)}`]) {
    assert.ok('fault' in quickness.of(long, () => readAddress(long)))
  }
  const worst = `${'a.'.repeat(32)}!@${'a-'.repeat(90)}`
  quickness.of(`1000 times ${worst}`, () => {
    for (let n = 0; n < 1000; n++) readAddress(worst)
  })
  t.diagnostic(`${count} texts, ${found} of them addresses, ${quickness}, seed ${chance.seed}`)
})
