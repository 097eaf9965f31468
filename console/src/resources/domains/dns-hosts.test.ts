import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { DnsRecord } from '../../api/operations.gen.ts'
import { type DnsHostId, dnsHosts, entryOf, likelyZoneOf, zonesOf } from './dns-hosts.ts'

const record = (type: DnsRecord['type'], name: string, value: string): DnsRecord => ({
  ...{ purpose: 'dkim', status: 'pending', type, name, value },
})
const enter = (host: DnsHostId, of: DnsRecord, zone = 'example.org') => entryOf(of, dnsHosts[host], zone)

describe('the entry of a record at a DNS host', () => {
  test('has a complete name at an unknown host, and a relative one at a host that appends the zone', () => {
    const of = record('TXT', '_postern.mail.example.org', 'postern-verification=1')
    assert.equal(enter('other', of).name, '_postern.mail.example.org')
    assert.deepEqual(enter('godaddy', of), {
      nameField: 'Name',
      name: '_postern.mail',
      valueField: 'Value',
      value: 'postern-verification=1',
    })
    assert.equal(enter('godaddy', of, 'mail.example.org').name, '_postern')
  })

  test('names the zone itself as the host does', () => {
    const of = record('MX', 'example.org', '10 mx.postern.example.net')
    assert.deepEqual(
      (['cloudflare', 'route53', 'namecheap'] as const).map((host) => enter(host, of).name),
      ['@', '', '@'],
    )
  })

  test('splits the priority off an MX record only where it has a field of its own', () => {
    const of = record('MX', 'mail.example.org', '10 mx.postern.example.net')
    assert.equal(enter('route53', of).value, '10 mx.postern.example.net')
    const { value, priority, valueField } = enter('cloudflare', of)
    assert.deepEqual([value, priority, valueField], ['mx.postern.example.net', '10', 'Mail server'])
  })

  test('quotes TXT values for Route 53, and splits long ones', () => {
    const { value } = enter('route53', record('TXT', 's._domainkey.example.org', 'k'.repeat(300)))
    assert.equal(value, `"${'k'.repeat(255)}" "${'k'.repeat(45)}"`)
  })

  test('does not shorten a name that only ends with the same letters', () => {
    assert.equal(enter('godaddy', record('TXT', 'myexample.org', 'x')).name, 'myexample.org')
  })
})

test('the zone of a domain is one of its parents, most likely the registered one', () => {
  assert.deepEqual(zonesOf('a.mail.example.org'), ['a.mail.example.org', 'mail.example.org', 'example.org'])
  assert.deepEqual(
    ['mail.example.org', 'example.org', 'mail.shop.co.uk', 'shop.co.uk', 'mail.example.de'].map(likelyZoneOf),
    ['example.org', 'example.org', 'shop.co.uk', 'shop.co.uk', 'example.de'],
  )
})
