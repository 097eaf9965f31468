import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { makeVerp, readVerp } from '../../mail/verp.ts'
import type { MasterKey } from './master-keys.ts'
import { verpKeysOf } from './verp-keys.ts'

test('return paths are read for as long as the master key stays that they were made under', () => {
  const masterKey = (id: string): MasterKey => ({ id, key: randomBytes(32) })
  const [old, now] = [masterKey('1'), masterKey('2')]
  const token = { shard: 7, messageId: '0190a5b2-7c1d-7e3f-8a4b-5c6d7e8f9a0b', recipientNo: 0, attempt: 1 }
  const local = makeVerp(verpKeysOf([old]), token)
  assert.deepEqual(readVerp(verpKeysOf([now, old]), local), token)
  assert.equal(readVerp(verpKeysOf([now]), local), undefined)
  // Derived, never the key itself.
  assert.equal(readVerp([old.key], local), undefined)
})
