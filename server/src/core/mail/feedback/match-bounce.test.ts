import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { decodeReturnPath, returnPathOf, verpKeysOf } from './match-bounce.ts'

const masterKey = (id: string) => ({ id, key: randomBytes(32) })
const [old, present, foreign] = [masterKey('1'), masterKey('2'), masterKey('3')]
const mail = { shard: 7, messageId: '01990000-0000-7000-8000-0123456789ab', recipientNo: 49, attempt: 3 }

describe('a return path', () => {
  test("identifies the message and uses the domain's alias", () => {
    const keys = verpKeysOf([present])
    const address = returnPathOf(keys, mail, 'mail.example.com')
    assert.match(address, /^[a-z0-9-]{1,64}@bounces\.mail\.example\.com$/)
    assert.deepEqual(decodeReturnPath(keys, address), mail)
    assert.deepEqual(decodeReturnPath(keys, address.toUpperCase()), mail)
    assert.deepEqual(decodeReturnPath(keys, address.replace(/@.*/, '@mx.example.org')), mail)
    assert.equal(address, returnPathOf(keys, mail, 'mail.example.com'), 'it is deterministic')
  })

  test('is decoded with an old master key while that key is configured', () => {
    const address = returnPathOf(verpKeysOf([old]), mail, 'example.com')
    assert.deepEqual(decodeReturnPath(verpKeysOf([present, old]), address), mail)
    assert.equal(decodeReturnPath(verpKeysOf([present]), address), undefined)
    assert.equal(decodeReturnPath(verpKeysOf([foreign, present]), address), undefined)
  })

  test('is signed with the first master key', () => {
    const address = returnPathOf(verpKeysOf([present, old]), mail, 'example.com')
    assert.deepEqual(decodeReturnPath(verpKeysOf([present]), address), mail)
    assert.equal(decodeReturnPath(verpKeysOf([old]), address), undefined)
  })

  test('is not signed with the master key itself', () => {
    const address = returnPathOf([present.key], mail, 'example.com')
    assert.equal(decodeReturnPath(verpKeysOf([present]), address), undefined)
  })

  test('has exactly one form', () => {
    for (const text of ['', '@', 'someone@example.com', 'bounce-@bounces.example.com', 'bounce-aaaa']) {
      assert.equal(decodeReturnPath(verpKeysOf([present]), text), undefined)
    }
  })
})
