import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { hashOf, isWellFormed, newSecret, storedForm } from './secret.ts'

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Once more, bit by bit and without zlib: IEEE 802.3, reflected. */
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
  test('says what it is, then 43 random characters, then the CRC-32 of all that in base 62', () => {
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

  test('is another one each time, and has every character in every place equally often', () => {
    const rounds = 20_000
    const counts = new Map<string, number>()
    const seen = new Set<string>()
    for (let n = 0; n < rounds; n++) {
      const random = newSecret('live').slice(8, -6)
      seen.add(random)
      for (const digit of random) counts.set(digit, (counts.get(digit) ?? 0) + 1)
    }
    assert.equal(seen.size, rounds)
    // 860,000 characters: 13,871 of each, give or take 117. Six times that happens once in 500 million.
    const expected = (rounds * 43) / 62
    for (const digit of digits) {
      const off = Math.abs((counts.get(digit) ?? 0) - expected)
      assert.ok(off < 6 * Math.sqrt(expected), `${digit} came ${counts.get(digit)} times`)
    }
  })

  test('with any one character changed, left out, added or swapped with its neighbour is none', () => {
    const secret = newSecret('live')
    for (let place = 0; place < secret.length; place++) {
      const [head, tail] = [secret.slice(0, place), secret.slice(place + 1)]
      for (const digit of digits) {
        if (digit !== secret[place]) assert.ok(!isWellFormed(head + digit + tail))
        assert.ok(!isWellFormed(head + digit + secret.slice(place)))
      }
      assert.ok(!isWellFormed(head + tail))
      const swapped = head + tail.slice(0, 1) + secret.charAt(place) + tail.slice(1)
      if (swapped !== secret) assert.ok(!isWellFormed(swapped))
    }
  })

  test('is nothing else', () => {
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

  test('is kept as its readable beginning and its SHA-256', () => {
    const secret = newSecret('live')
    assert.deepEqual(storedForm(secret), {
      prefix: secret.slice(0, 12),
      secret_hash: createHash('sha256').update(secret).digest(),
    })
    assert.equal(hashOf(secret).length, 32)
  })
})
