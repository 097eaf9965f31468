import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PosternError } from '../../../platform/errors.ts'
import { createNetGuard } from '../../../platform/net/net-guard.ts'
import { resolverAt } from '../../../testing/peers/dns.ts'
import { endpointUrl } from './url.ts'

// No DNS lookups here.
const guard = createNetGuard({ resolver: resolverAt('127.0.0.1:9'), allowedNetworks: [], ports: [443, 8443] })

function refused(text: string, why: RegExp): void {
  try {
    endpointUrl(text, guard)
  } catch (error) {
    assert.ok(error instanceof PosternError && error.code === 'validation_failed')
    assert.match(error.message, /^"url" .*\.$/)
    assert.match(error.message, why, text)
    return
  }
  assert.fail(`${text} was accepted`)
}

test('a URL is stored in its normalized form', () => {
  const cases: Record<string, string> = {
    'https://example.com': 'https://example.com/',
    'HTTPS://Hooks.Example.COM:443/a/../b?x=1&y=%20': 'https://hooks.example.com/b?x=1&y=%20',
    'https://example.com:8443/hook': 'https://example.com:8443/hook',
    'https://bücher.example/ü': 'https://xn--bcher-kva.example/%C3%BC',
    'https://8.8.8.8/hook': 'https://8.8.8.8/hook',
    'https://[2606:4700:0::1111]/': 'https://[2606:4700::1111]/',
    'https://134744072/': 'https://8.8.8.8/',
    'https://internal.example.com/': 'https://internal.example.com/',
    'https://mylocal.example/': 'https://mylocal.example/',
  }
  for (const [given, stored] of Object.entries(cases)) {
    assert.equal(endpointUrl(given, guard), stored)
    assert.equal(endpointUrl(stored, guard), stored, 'normalization is idempotent')
  }
})

test('anything except a full https URL is rejected', () => {
  for (const text of [
    '',
    'example.com',
    'http://example.com/',
    'ftp://example.com/',
    '//example.com/',
    'https:example.com',
    'https:/example.com',
    'https:///example.com',
    'javascript:alert(1)',
    'wss://example.com',
  ]) {
    refused(text, /starts with https/)
  }
  for (const text of [
    'https://exa mple.com/',
    ' https://example.com',
    'https://exam\nple.com',
    'https:\\\\a.b',
  ]) {
    refused(text, /whitespace or backslashes/)
  }
  for (const text of [
    'https://example.com:99999/',
    'https://[::1',
    'https://1.2.3.4.5/',
    'https://ex%zz.com/',
  ]) {
    refused(text, /not a valid/)
  }
})

test('credentials, fragments and overlong URLs are rejected', () => {
  refused('https://user@example.com/', /user name or password/)
  refused('https://user:password@example.com/', /user name or password/)
  refused('https://:password@example.com/', /user name or password/)
  refused('https://example.com/#top', /fragment/)
  refused('https://example.com/#', /fragment/)
  const start = 'https://example.com/'
  assert.equal(endpointUrl(start + 'a'.repeat(2048 - start.length), guard).length, 2048)
  refused(start + 'a'.repeat(2049 - start.length), /2048/)
  refused(start + 'ü'.repeat(500), /2048 characters long when encoded/)
})

test('a host that is not a public DNS name is rejected in any notation', () => {
  for (const host of [
    'localhost',
    'LOCALHOST',
    'localhost.',
    'ⓛocalhost',
    'a.localhost',
    'printer.local',
    'db.internal',
    'metadata.google.internal',
    'metadata.google.internal.',
    'intranet',
    'example.com.',
    'under_score.example.com',
    '-dash.example.com',
    'a..example.com',
    `${'a'.repeat(64)}.example.com`,
    `${'a.'.repeat(126)}com`,
  ]) {
    refused(`https://${host}/`, /not a public name/)
  }
})

test('a non-global IP address is rejected in any notation', () => {
  for (const host of [
    '127.0.0.1',
    '127.1',
    '0x7f.1',
    '0177.0.0.1',
    '2130706433',
    '①②⑦.0.0.1',
    '0.0.0.0',
    '0',
    '10.0.0.1',
    '100.64.0.1',
    '169.254.169.254',
    '172.16.0.1',
    '192.168.0.1',
    '192.0.0.8',
    '192.0.2.1',
    '192.88.99.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '[::]',
    '[::1]',
    '[::2]',
    '[::ffff:8.8.8.8]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[64:ff9b:1::1]',
    '[100::1]',
    '[2001::1]',
    '[2001:db8::1]',
    '[2002:7f00:1::]',
    '[3fff::1]',
    '[4000::1]',
    '[5f00::1]',
    '[fc00::1]',
    '[fd12:3456::1]',
    '[fe80::1]',
    '[fec0::1]',
    '[ff02::1]',
  ]) {
    refused(`https://${host}/`, /private or special address/)
  }
})
