import assert from 'node:assert/strict'
import Schemas from 'typebox/schema'
import { webhooks } from '../../http/webhook-events.ts'

interface Post {
  post: { requestBody: { content: { 'application/json': { schema: object } } } }
}

const validators = new Map(
  Object.entries(webhooks((schema) => schema)).map(([type, webhook]) => [
    type,
    Schemas.Compile((webhook as Post).post.requestBody.content['application/json'].schema as never),
  ]),
)

/** Every type that the OpenAPI document describes. */
export const documentedTypes = [...validators.keys()]

/** The payload is as described in the `webhooks` section of the OpenAPI document. */
export function assertDocumented(payload: { type: string; timestamp: string; data: object }): void {
  const validator = validators.get(payload.type) ?? assert.fail(`${payload.type} is not documented`)
  const [isValid, errors] = validator.Errors(payload)
  const faults = isValid ? [] : errors.map(({ instancePath, message }) => `${instancePath} ${message}`)
  assert.deepEqual(faults, [], JSON.stringify(payload))
}
