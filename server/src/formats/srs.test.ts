import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { readAddress } from './address.ts'
import { makeSrs, readSrs, type SrsKeys } from './srs.ts'

const keyOf = (name: string): Buffer => createHash('sha256').update(name).digest()
const keys: SrsKeys = [keyOf('new'), keyOf('old')]
const now = new Date('2026-11-14T09:30:00Z')
const inDays = (days: number) => new Date(now.getTime() + days * 24 * 3600_000)

describe('a rewritten sender', () => {
  test('is a local address and decodes to the original sender', () => {
    const made = makeSrs(keys, 'Ada.Lovelace+x@mail.example.com', now) ?? assert.fail()
    assert.match(made, /^SRS0=[a-z2-7]{8}=[a-z2-7]{2}=mail\.example\.com=Ada\.Lovelace\+x$/)
    assert.ok(!('fault' in readAddress(`${made}@bounces.shop.example`)))
    assert.equal(readSrs(keys, made, now), 'Ada.Lovelace+x@mail.example.com')
    assert.equal(
      readSrs(keys, made.toLowerCase(), now),
      'ada.lovelace+x@mail.example.com',
      'case-insensitive',
    )
    assert.equal(readSrs([keyOf('newest'), ...keys], made, now), 'Ada.Lovelace+x@mail.example.com')
  })

  test('is valid for 21 days, including when the 1,024-day counter wraps around', () => {
    for (const offset of [0, 1000, 1010, 1023, 2047]) {
      const made = makeSrs(keys, 'a@example.com', inDays(offset)) ?? assert.fail()
      assert.equal(readSrs(keys, made, inDays(offset + 21)), 'a@example.com')
      assert.equal(readSrs(keys, made, inDays(offset + 22)), undefined)
      assert.equal(readSrs(keys, made, inDays(offset - 1)), undefined, 'not yet valid')
    }
  })

  test('is invalid if any character is changed or it was signed with another key', () => {
    const made = makeSrs(keys, 'ada@example.com', now) ?? assert.fail()
    for (let at = 0; at < made.length; at++) {
      const other = made[at] === 'b' ? 'c' : 'b'
      assert.equal(readSrs(keys, made.slice(0, at) + other + made.slice(at + 1), now), undefined, String(at))
    }
    assert.equal(readSrs([keyOf('other')], made, now), undefined)
    for (const text of [
      '',
      'SRS0=',
      'SRS0=aaaaaaaa=',
      'SRS1=aaaaaaaa=a.example==x',
      'ada',
      `SRS0=${'a'.repeat(200)}`,
    ]) {
      assert.equal(readSrs(keys, text, now), undefined, text)
    }
  })

  test('from an earlier forwarder is returned to the first forwarder, regardless of the number of hops', () => {
    const first: SrsKeys = [keyOf('first')]
    const theirs = makeSrs(first, 'a@b.example', now) ?? assert.fail()
    const once = makeSrs(keys, `${theirs}@f.example`, now) ?? assert.fail()
    assert.match(once, /^SRS1=[a-z2-7]{8}=f\.example==[a-z2-7]{8}=[a-z2-7]{2}=b\.example=a$/)
    assert.equal(readSrs(keys, once, now), `${theirs}@f.example`)
    const last: SrsKeys = [keyOf('last')]
    const twice = makeSrs(last, `${once}@bounces.shop.example`, now) ?? assert.fail()
    assert.equal(twice.length, once.length, 'the length does not grow')
    assert.equal(readSrs(last, twice, now), `${theirs}@f.example`)
    const plus = makeSrs(keys, 'SRS0+abcd=tt=b.example=a@f.example', now) ?? assert.fail()
    assert.equal(readSrs(keys, plus, now), 'SRS0+abcd=tt=b.example=a@f.example')
  })

  test('cannot encode senders that are longer than 64 octets or not ASCII', () => {
    const fits = `${'a'.repeat(35)}@example.com`
    assert.equal(makeSrs(keys, fits, now)?.length, 64)
    assert.equal(makeSrs(keys, `a${fits}`, now), undefined)
    for (const sender of ['', '@example.com', 'ada', 'ö@example.com', 'a b@example.com']) {
      assert.equal(makeSrs(keys, sender, now), undefined, sender)
    }
  })
})
