import type { FastifyRequest, FastifySchemaValidationError } from 'fastify'
import { PosternError } from '../errors.ts'
import { CheckedBody } from './checked-body.ts'
import { hasManyValues, manyValues } from './many-values.ts'
import { decodeParameters } from './parameters.ts'
import { refuseUnstorableText } from './storable.ts'
import { validationMessage } from './validation-messages.ts'
import { ifMatchOf } from './versions.ts'

/** Checks that run before an operation's schema validation, on every plane with bearer authentication. */

// An endpoint with all its events takes less than 8 KiB. Operations with larger bodies set their own limit.
export const ordinaryBodyLimitBytes = 64 * 1024

/** `preValidation` hooks: headers, then path and query, then text that cannot be stored. */
export const checks = [checkHeaders, decodeParameters, refuseUnstorableText]

async function checkHeaders({ headers }: FastifyRequest): Promise<void> {
  ifMatchOf(headers['if-match'])
  idempotencyKeyOf(headers['idempotency-key'])
}

export function idempotencyKeyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  if (typeof header === 'string' && /^[\x21-\x7e]{1,255}$/.test(header)) return header
  throw new PosternError(
    'invalid_parameter',
    'Idempotency-Key must be sent only once and consist of 1 to 255 visible ASCII characters without spaces.',
  )
}

/** The first `preValidation` hook of operations with large bodies. */
export async function refuseManyValues({ body }: FastifyRequest): Promise<void> {
  if (body instanceof CheckedBody) body.refuse('values')
  else if (hasManyValues(body)) throw manyValues()
}

/** Such as a DELETE or a rotation. An operation with fields needs a body even if all of them are optional. */
export const acceptsNoBody = ({ body }: { body: object }): boolean => Object.keys(body).length === 0

/** Treats a missing body as an empty object, unless the operation has fields. */
export const requireBody =
  (operation: { body: object }) =>
  async (request: FastifyRequest): Promise<void> => {
    if (request.body !== undefined) return
    if (!acceptsNoBody(operation)) {
      throw new PosternError('invalid_json', 'The body is empty; send a JSON object.')
    }
    request.body = {}
  }

/** Distinguishes an incomplete configuration from an invalid one. */
export const bodyFault =
  ({ isCompleteConfiguration }: { isCompleteConfiguration?: true }) =>
  (faults: FastifySchemaValidationError[]): Error => {
    const missing = faults.flatMap(({ keyword, instancePath, params }) =>
      keyword === 'required' && instancePath === '' ? [`"${params['missingProperty']}"`] : [],
    )
    if (isCompleteConfiguration && missing.length > 0) {
      return new PosternError(
        'incomplete_configuration',
        `This operation requires the complete configuration; the body lacks ${missing.join(', ')}. Send every field, using null for values that do not apply.`,
      )
    }
    return new PosternError('validation_failed', validationMessage(faults))
  }
