import assert from 'node:assert/strict'
import type { ErrorCode } from '../../platform/errors.ts'
import type { Answer } from '../harness/client.ts'

/** Asserts that the request was rejected with this status and a JSON body with only this error code and a message. */
export function assertProblem(answer: Answer, status: number, error: ErrorCode): void {
  assert.deepEqual({ status: answer.status, error: answer.body?.error }, { status, error }, answer.text)
  assert.deepEqual(Object.keys(answer.body), ['error', 'message'])
  assert.match(answer.body.message, /^\S.+\S\.$/)
  assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
}
