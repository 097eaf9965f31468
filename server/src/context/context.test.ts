import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { loadConfig } from '../config/config.ts'
import { createLogger } from '../platform/telemetry/log.ts'
import { startDns } from '../testing/peers/dns.ts'
import { startSesPeer } from '../testing/peers/ses-peer.ts'
import { createContext } from './context.ts'

const peer = await startSesPeer()
const dns = await startDns({ '.': [{ name: 'customer.example', type: 'TXT', value: 'here' }] })

// The tests do not use the database, so it does not need to exist.
const contextWith = (environment: Record<string, string>) =>
  createContext(
    loadConfig({
      POSTERN_DATABASE_URL: 'postgres://nobody@localhost/unused',
      POSTERN_PUBLIC_URL: 'http://localhost:8080',
      POSTERN_AUTH_SECRETS: `1:${'test-secret-'.repeat(4)}`,
      POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
      ...environment,
    }),
    createLogger('silent'),
    'postern test',
  )

describe('the context of a process', () => {
  test('has SES if it is configured, with its region and the credentials from the environment', async () => {
    const context = contextWith(peer.settings)
    assert.deepEqual(context.providers.ses?.location, peer.location)
    const registration = await context.providers.ses?.register('customer.example')
    assert.deepEqual(registration?.dkimTokens, peer.tokens('customer.example'))
    await context.close()
  })

  test('always has the service provider, and SES only if configured', async () => {
    const context = contextWith({})
    assert.equal(context.providers.service.name, 'service')
    assert.equal(context.providers.ses, undefined)
    await context.close()
  })

  test('uses the configured DNS servers', async () => {
    const context = contextWith({ POSTERN_DNS_SERVERS: dns.server })
    assert.deepEqual(await context.dns.txt('customer.example'), { kind: 'found', values: ['here'] })
    await context.close()
  })
})
