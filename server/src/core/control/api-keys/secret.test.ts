import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { hashOf, isWellFormed, newSecret, storedForm } from './secret.ts'

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** An independent implementation, bit by bit and without zlib: IEEE 802.3, reflected. */
function crc32(text: string): number {
  let crc = 0xffffffff
  for (const byte of Buffer.from(text)) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  }
  return (crc ^ 0xffffffff) >>> 0
}

const numberIn = (text: string): number =>
  [...text].reduce((value, digit) => value * 62 + digits.indexOf(digit), 0)

describe('the secret of an API key', () => {
  test('is a prefix, 43 random characters, and the CRC-32 of both in base 62', () => {
    assert.equal(crc32('123456789'), 0xcbf43926)
    for (const mode of ['live', 'test'] as const) {
      for (let n = 0; n < 1000; n++) {
        const secret = newSecret(mode)
        assert.match(secret, new RegExp(`^pk_${mode}_[0-9A-Za-z]{49}$`))
        assert.equal(numberIn(secret.slice(-6)), crc32(secret.slice(0, -6)))
        assert.ok(isWellFormed(secret))
      }
    }
  })

  test('is unique, and uses every character equally often', () => {
    const rounds = 20_000
    const counts = new Map<string, number>()
    const seen = new Set<string>()
    for (let n = 0; n < rounds; n++) {
      const random = newSecret('live').slice(8, -6)
      seen.add(random)
      for (const digit of random) counts.set(digit, (counts.get(digit) ?? 0) + 1)
    }
    assert.equal(seen.size, rounds)
    // 860,000 characters: 13,871 of each are expected, with a standard deviation of 117. A difference of six
    // standard deviations occurs once in 500 million cases.
    const expected = (rounds * 43) / 62
    for (const digit of digits) {
      const off = Math.abs((counts.get(digit) ?? 0) - expected)
      assert.ok(off < 6 * Math.sqrt(expected), `${digit} came ${counts.get(digit)} times`)
    }
  })

  test('is invalid if any one character is changed, removed, added or swapped with its neighbour', () => {
    const secret = newSecret('live')
    for (let index = 0; index < secret.length; index++) {
      const [head, tail] = [secret.slice(0, index), secret.slice(index + 1)]
      for (const digit of digits) {
        if (digit !== secret[index]) assert.ok(!isWellFormed(head + digit + tail))
        assert.ok(!isWellFormed(head + digit + secret.slice(index)))
      }
      assert.ok(!isWellFormed(head + tail))
      const swapped = head + tail.slice(0, 1) + secret.charAt(index) + tail.slice(1)
      if (swapped !== secret) assert.ok(!isWellFormed(swapped))
    }
  })

  test('has no other valid form', () => {
    const secret = newSecret('test')
    for (const text of [
      '',
      'pk_',
      'pk_test_',
      secret.replace('test', 'live'),
      secret.toUpperCase(),
      ` ${secret}`,
      `${secret} `,
      `${secret}\n`,
      `${secret}${secret}`,
      secret.replace('pk_', 'sk_'),
      secret.slice(0, -6),
      `pk_live_${'0'.repeat(49)}`,
      `pk_live_${'ü'.repeat(49)}`,
      'x'.repeat(1_000_000),
    ]) {
      assert.ok(!isWellFormed(text), text.slice(0, 80))
    }
  })

  test('is stored as its prefix and its SHA-256', () => {
    const secret = newSecret('live')
    assert.deepEqual(storedForm(secret), {
      prefix: secret.slice(0, 12),
      secret_hash: createHash('sha256').update(secret).digest(),
    })
    assert.equal(hashOf(secret).length, 32)
  })
})
