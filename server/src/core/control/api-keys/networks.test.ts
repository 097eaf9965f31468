import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PosternError } from '../../../platform/errors.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'
import { allowedNetworks, isAllowedFrom, shownNetwork } from './networks.ts'

function refused(texts: string[], why: RegExp): void {
  try {
    allowedNetworks(texts)
  } catch (error) {
    assert.ok(error instanceof PosternError && error.code === 'validation_failed', String(error))
    assert.match(error.message, /^"allowed_ips" .*\.$/)
    assert.match(error.message, why, texts.join())
    return
  }
  assert.fail(`${texts.join()} was accepted`)
}

describe('the allowed addresses of an API key', () => {
  test('are addresses and networks in canonical form and in the specified order', () => {
    const cases: Record<string, string> = {
      '192.0.2.7': '192.0.2.7',
      '192.0.2.7/32': '192.0.2.7',
      '192.0.2.0/24': '192.0.2.0/24',
      '0.0.0.0/0': '0.0.0.0/0',
      '10.0.0.0/8': '10.0.0.0/8',
      '2001:DB8::7': '2001:db8::7',
      '2001:0db8:0000:0000:0000:0000:0000:0007/128': '2001:db8::7',
      '2001:db8::/32': '2001:db8::/32',
      '2001:db8:0:0:1:0:0:0/80': '2001:db8:0:0:1::/80',
      '::1': '::1',
      '::/0': '::/0',
    }
    for (const [given, kept] of Object.entries(cases)) {
      assert.deepEqual(allowedNetworks([given]), [kept])
      assert.deepEqual(allowedNetworks([kept]), [kept])
    }
    assert.deepEqual(allowedNetworks([]), [])
    assert.deepEqual(allowedNetworks(['203.0.113.0/24', '::1', '192.0.2.7']), [
      '203.0.113.0/24',
      '::1',
      '192.0.2.7',
    ])
  })

  test('are rejected if host bits are set, and the error suggests the network and the address', () => {
    refused(['192.0.2.7/24'], /Use 192\.0\.2\.0\/24 for the network or 192\.0\.2\.7 for the address/)
    refused(['2001:db8::7/32'], /Use 2001:db8::\/32 for the network or 2001:db8::7 for the address/)
    refused(['0.0.0.1/0'], /Use 0\.0\.0\.0\/0/)
    refused(['128.0.0.0/0'], /Use 0\.0\.0\.0\/0/)
  })

  test('are rejected if repeated in another notation', () => {
    refused(['192.0.2.7', '192.0.2.7/32'], /must not repeat 192\.0\.2\.7/)
    refused(['::1', '2001:db8::', '0:0:0:0:0:0:0:1'], /must not repeat ::1/)
    refused(['2001:db8::/32', '2001:DB8:0::/32'], /must not repeat/)
    assert.equal(allowedNetworks(['192.0.2.0', '192.0.2.0/24']).length, 2)
  })

  test('are rejected in any other notation', () => {
    for (const text of [
      '',
      ' ',
      'localhost',
      'example.com',
      '192.0.2',
      '192.0.2.',
      '192.0.2.256',
      '192.0.2.07',
      '0300.0.2.7',
      '0xc0.0.2.7',
      '3221225991',
      ' 192.0.2.7',
      '192.0.2.7 ',
      '192.0.2.7\n',
      '192.0.2.7/',
      '192.0.2.7/33',
      '192.0.2.7/-1',
      '192.0.2.0/024',
      '192.0.2.0/24/24',
      '192.0.2.0/255.255.255.0',
      '192.0.2.*',
      '192.0.2.1-192.0.2.9',
      '::1/129',
      '1::2::3',
      '12345::',
      ':::',
      'fe80::1%eth0',
      '[::1]',
      'g::1',
      '1'.repeat(1000),
    ]) {
      refused([text], /not an IP address or network/)
    }
  })

  test('are rejected as IPv4 addresses written as IPv6', () => {
    for (const text of [
      '::ffff:192.0.2.7',
      '::ffff:c000:207',
      '::ffff:0:0/96',
      '::192.0.2.7',
      '::c000:207',
      '::2',
      '64:ff9b::192.0.2.7',
    ]) {
      refused([text], /an IPv4 address written as IPv6/)
    }
  })

  test('are returned unchanged by PostgreSQL', async (t) => {
    const database = await testDatabase()
    const chance = new Chance(seed)
    const given: string[] = []
    while (given.length < 2000) {
      const isV6 = chance.happens(0.7)
      const groups = Array.from({ length: isV6 ? 8 : 4 }, () =>
        chance.happens(0.5) ? 0 : chance.below(isV6 ? 65_536 : 256),
      )
      const host = isV6 ? groups.map((group) => group.toString(16)).join(':') : groups.join('.')
      const bits = chance.happens(0.3) ? '' : `/${chance.below(isV6 ? 129 : 33)}`
      try {
        given.push(...allowedNetworks([host + bits]))
      } catch (error) {
        assert.ok(error instanceof PosternError)
      }
    }
    const rows = await database.query<{ kept: string[] }>('select $1::cidr[]::text[] as kept', [given])
    assert.deepEqual(rows[0]?.kept.map(shownNetwork), given, `seed ${chance.seed}`)
    t.diagnostic(`${given.length} networks, seed ${chance.seed}`)
  })
})

describe('a client address', () => {
  test('is allowed by an empty list', () => {
    for (const remote of ['192.0.2.7', '::1', '::ffff:192.0.2.7', '']) assert.ok(isAllowedFrom([], remote))
  })

  test("is allowed if an entry contains it, in PostgreSQL's notation and in Postern's", () => {
    for (const list of [
      ['192.0.2.0/24', '2001:db8::/32', '203.0.113.9'],
      ['192.0.2.0/24', '2001:db8::/32', '203.0.113.9/32'],
    ]) {
      for (const remote of [
        '192.0.2.0',
        '192.0.2.7',
        '192.0.2.255',
        '::ffff:192.0.2.7',
        '::ffff:c000:207',
        '203.0.113.9',
        '2001:db8::',
        '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff',
      ]) {
        assert.ok(isAllowedFrom(list, remote), remote)
      }
      for (const remote of [
        '192.0.3.0',
        '192.0.1.255',
        '203.0.113.8',
        '2001:db9::',
        '2001:db7:ffff::',
        '::1',
        '::',
        '::192.0.2.7.1',
        'unknown',
        '',
      ]) {
        assert.ok(!isAllowedFrom(list, remote), remote)
      }
    }
  })

  test('of one family is not allowed by a network of the other', () => {
    assert.ok(!isAllowedFrom(['0.0.0.0/0'], '2001:db8::1'))
    assert.ok(isAllowedFrom(['0.0.0.0/0'], '::ffff:192.0.2.7'))
    assert.ok(!isAllowedFrom(['::/0'], '192.0.2.7'))
    assert.ok(!isAllowedFrom(['::/0'], '::ffff:192.0.2.7'))
    assert.ok(isAllowedFrom(['::/0'], '2001:db8::1'))
  })
})
