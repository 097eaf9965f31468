import assert from 'node:assert/strict'
import type { ErrorCode } from '../../platform/errors.ts'
import type { Answer } from '../harness/client.ts'

/** A refusal as every one has to be: this status, and a JSON body of this code and a sentence, nothing else. */
export function assertProblem(answer: Answer, status: number, error: ErrorCode): void {
  assert.deepEqual({ status: answer.status, error: answer.body?.error }, { status, error }, answer.text)
  assert.deepEqual(Object.keys(answer.body), ['error', 'message'])
  assert.match(answer.body.message, /^\S.+\S\.$/)
  assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
}
