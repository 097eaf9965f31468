import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PosternError } from '../../../platform/errors.ts'
import { domainName } from './name.ts'

const label63 = 'a'.repeat(63)
/** A name of this many characters below example.com. */
const nameOf = (length: number): string => {
  const rest = length - '.example.com'.length
  const labels = Array.from({ length: Math.floor(rest / 64) }, () => label63)
  const last = rest - labels.length * 64
  return [...(last > 0 ? ['b'.repeat(last)] : []), ...labels, 'example.com'].join('.')
}

describe('a domain name', () => {
  const taken: Record<string, [given: string, stored: string]> = {
    'in its stored form': ['mail.example.com', 'mail.example.com'],
    'in upper case': ['Mail.EXAMPLE.Com', 'mail.example.com'],
    'with a trailing dot': ['mail.example.com.', 'mail.example.com'],
    'with non-ASCII letters': ['Bücher.example', 'xn--bcher-kva.example'],
    'with decomposed letters': ['bu\u0308cher.example', 'xn--bcher-kva.example'],
    'in A-labels': ['XN--BCHER-KVA.example', 'xn--bcher-kva.example'],
    'in another script': ['例え.テスト', 'xn--r8jz45g.xn--zckzah'],
    'with an ideographic full stop': ['例え。テスト', 'xn--r8jz45g.xn--zckzah'],
    'in full-width letters': ['ｅｘａｍｐｌｅ.com', 'example.com'],
    'with a soft hyphen': ['exam\u00adple.com', 'example.com'],
    'with digits and hyphens': ['3-mail.4example.com', '3-mail.4example.com'],
    'with a label of digits': ['127.example.com', '127.example.com'],
    'below a private suffix': ['shop.github.io', 'shop.github.io'],
    'below a suffix of two labels': ['shop.co.uk', 'shop.co.uk'],
    'below an unlisted suffix': ['mail.intranet', 'mail.intranet'],
    'with a label of 63 characters': [`${label63}.example.com`, `${label63}.example.com`],
    'of the maximum length': [nameOf(209), nameOf(209)],
  }
  for (const [what, [given, stored]] of Object.entries(taken)) {
    test(`${what} is accepted`, () => assert.equal(domainName(given), stored))
  }

  const refused: Record<string, string[]> = {
    'a public suffix': ['com', 'co.uk', 'github.io', 'CO.UK.', '公司.cn', 'localhost', 'intranet'],
    'an IP address': ['127.0.0.1', '2130706433', '0x7f.1', '1.2.3', '[::1]', '::1', 'example.1'],
    nothing: ['', '.', '..', ' '],
    'with empty labels': ['.example.com', 'mail..example.com', 'example.com..'],
    'with invalid characters': [
      'mail example.com',
      ' example.com',
      'example.com\n',
      'exa\u0000mple.com',
      'exa_mple.com',
      '_dmarc.example.com',
      '*.example.com',
      'info@example.com',
      'example.com:25',
      'https://example.com',
      'example.com/',
      'exam%70le.com',
      'example.com?x',
      'example.com#x',
      'exam\\ple.com',
      'exam"ple.com',
      "exam'ple.com",
      'exam\u200bple.com/',
    ],
    'with a leading or trailing hyphen': ['-mail.example.com', 'mail-.example.com'],
    'with invalid A-labels': ['xn--a.example', 'xn--.example', 'xn--ü.example'],
    'too long': [nameOf(210), nameOf(253), `${'a'.repeat(64)}.example.com`, `${'ü'.repeat(60)}.example.com`],
  }
  for (const [what, names] of Object.entries(refused)) {
    test(`${what} is rejected`, () => {
      for (const name of names) {
        assert.throws(
          () => domainName(name),
          (error) =>
            error instanceof PosternError &&
            error.code === 'validation_failed' &&
            /^"name" .+\.$/.test(error.message),
          JSON.stringify(name),
        )
      }
    })
  }

  test('is rejected with a reason', () => {
    assert.throws(() => domainName('co.uk'), /public suffix/)
    assert.throws(() => domainName('127.0.0.1'), /IP address/)
    assert.throws(() => domainName('info@example.com'), /plain name/)
    assert.throws(() => domainName('a_b.example.com'), /not a valid/)
    assert.throws(() => domainName(nameOf(210)), /209 characters/)
  })
})
