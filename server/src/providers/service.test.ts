import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createServiceProvider } from './service.ts'

test('the own fleet takes every name, keeps it nowhere, and gives no tokens', async () => {
  const service = createServiceProvider()
  assert.equal(service.name, 'service')
  assert.deepEqual(service.place, { account: null, region: null })
  const none = { dkimTokens: [], dkimZone: null }
  assert.deepEqual(await service.register('customer.example'), none)
  const report = { isRegistered: true, isVerified: true, ...none, detail: null }
  assert.deepEqual(await service.look('customer.example'), report)
  await service.deregister('customer.example')
  service.close()
})
