import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { ParserTiming } from '../testing/harness/parser-timing.ts'
import { Chance, seed } from '../testing/harness/random.ts'
import { makeVerp, readVerp, type VerpKeys, type VerpToken } from './verp.ts'

const chance = new Chance(seed)
const octets = (count: number) => Buffer.from(Array.from({ length: count }, () => chance.below(256)))
const keys: VerpKeys = [octets(32)]

function someToken(): VerpToken {
  const messageId = octets(16)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  return { shard: chance.below(1024), messageId, recipientNo: chance.below(256), attempt: chance.below(256) }
}

describe('a return path', () => {
  test('decodes to the values that it was encoded from', () => {
    for (let n = 0; n < 2000; n++) {
      const token = someToken()
      const local = makeVerp(keys, token)
      assert.match(local, /^bounce-[a-z2-7]{48}$/)
      assert.deepEqual(readVerp(keys, local), token)
      assert.deepEqual(readVerp(keys, local.toUpperCase()), token)
    }
  })

  test('follows RFC 4648 and the documented format', () => {
    const token = {
      shard: 0x0102,
      messageId: '00112233-4455-6677-8899-aabbccddeeff',
      recipientNo: 3,
      attempt: 4,
    }
    const local = makeVerp([Buffer.alloc(32, 1)], token)
    // Generated with `openssl dgst -sha256 -mac HMAC` and `basenc --base32`.
    assert.equal(local, 'bounce-aebaaejcgncfkztxrcm2vo6m3xxp6aye2d5holtxls2bwl56')
  })

  test('is verified with every configured key and signed with the first', () => {
    const [old, now, other] = [octets(32), octets(32), octets(32)]
    const token = someToken()
    const before = makeVerp([old], token)
    assert.deepEqual(readVerp([now, old], before), token)
    assert.equal(makeVerp([now, old], token), makeVerp([now], token))
    assert.equal(readVerp([now, other], before), undefined)
  })

  test('is invalid if a single bit is changed', () => {
    const local = makeVerp(keys, someToken())
    for (let at = 7; at < local.length; at++) {
      for (const character of 'abcdefghijklmnopqrstuvwxyz234567') {
        const changed = local.slice(0, at) + character + local.slice(at + 1)
        assert.equal(readVerp(keys, changed) === undefined, changed !== local)
      }
    }
  })

  test('counts every attempt after the 255th as the 255th, and rejects numbers that are out of range', () => {
    const token = someToken()
    assert.equal(readVerp(keys, makeVerp(keys, { ...token, attempt: 1000 }))?.attempt, 255)
    assert.throws(() => makeVerp(keys, { ...token, recipientNo: 256 }), RangeError)
    assert.throws(() => makeVerp(keys, { ...token, shard: 65_536 }), RangeError)
    assert.throws(() => makeVerp(keys, { ...token, messageId: 'x' }), RangeError)
  })
})

test('any local part is accepted or rejected quickly', (t) => {
  const count = Number(process.env['POSTERN_TEST_INPUTS'] ?? 50_000)
  const token = someToken()
  const local = makeVerp(keys, token)
  const quickness = new ParserTiming()
  for (let n = 0; n < count; n++) {
    const at = chance.below(local.length)
    const text = chance.pick([
      () => octets(chance.below(80)).toString('latin1'),
      () => local.slice(0, at) + octets(1 + chance.below(3)).toString('latin1') + local.slice(at + 1),
      () => local.slice(0, at) + local.slice(at + 1),
      () => `bounce-${randomBytes(24).toString('hex')}`,
      () => `${local}${octets(chance.below(20)).toString('latin1')}`,
    ])()
    const read = quickness.of(text, () => readVerp(keys, text))
    if (text.toLowerCase() !== local) assert.equal(read, undefined, JSON.stringify(text))
  }
  assert.equal(readVerp(keys, local.repeat(100_000)), undefined)
  t.diagnostic(`${count} texts, ${quickness}, seed ${chance.seed}`)
})
