import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { loadConfig } from '../config/config.ts'
import { createLogger } from '../platform/telemetry/log.ts'
import { startDns } from '../testing/peers/dns.ts'
import { startSesPeer } from '../testing/peers/ses-peer.ts'
import { createContext } from './context.ts'

const peer = await startSesPeer()
const dns = await startDns({ '.': [{ name: 'customer.example', type: 'TXT', value: 'here' }] })

// Nothing is asked of the database, so it may be one that is not there.
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

describe('the parts of a process', () => {
  test('have SES where it is configured, in its place, with credentials of the environment', async () => {
    const context = contextWith(peer.settings)
    assert.deepEqual(context.providers.ses?.place, peer.place)
    const registration = await context.providers.ses?.register('customer.example')
    assert.deepEqual(registration?.dkimTokens, peer.tokens('customer.example'))
    await context.close()
  })

  test('have the own fleet always, and SES only if asked for', async () => {
    const context = contextWith({})
    assert.equal(context.providers.service.name, 'service')
    assert.equal(context.providers.ses, undefined)
    await context.close()
  })

  test('ask the DNS servers that are configured', async () => {
    const context = contextWith({ POSTERN_DNS_SERVERS: dns.server })
    assert.deepEqual(await context.dns.txt('customer.example'), { kind: 'found', values: ['here'] })
    await context.close()
  })
})
