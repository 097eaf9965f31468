import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { errorCodes, PosternError } from '../../platform/errors.ts'
import { Refusal, refusalOf, replies } from './replies.ts'

describe('SMTP replies', () => {
  test('cover all error codes, with reply codes that match the enhanced status codes', () => {
    assert.deepEqual(Object.keys(replies).sort(), [...errorCodes].sort())
    for (const [error, { code, status }] of Object.entries(replies)) {
      assert.match(status, /^[45]\.\d\.\d$/, error)
      assert.equal(status[0], String(code)[0], error)
    }
  })

  test('state the reason in one line of ASCII within the length limit', () => {
    const { responseCode, message } = refusalOf(
      new PosternError('project_locked', `Locked\r\n250 ü ${'x'.repeat(600)}`),
    )
    assert.equal(responseCode, 550)
    assert.match(message, /^5\.7\.1 Locked\?250 \? x+$/)
    assert.ok(message.length <= 480)
  })

  test('do not reveal internal errors', () => {
    for (const error of [new Error('password=x'), new PosternError('internal_error', 'password=x'), 'x']) {
      const refusal = refusalOf(error)
      assert.equal(
        `${refusal.responseCode} ${refusal.message}`,
        '451 4.3.0 Temporary failure, try again later',
      )
    }
  })

  test('leave a Refusal unchanged', () => {
    const refusal = new Refusal(452, '4.3.1 Full')
    assert.equal(refusalOf(refusal), refusal)
  })
})
