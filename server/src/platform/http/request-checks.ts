import type { FastifyRequest, FastifySchemaValidationError } from 'fastify'
import { PosternError } from '../errors.ts'
import { CheckedBody } from './checked-body.ts'
import { hasManyValues, manyValues } from './many-values.ts'
import { decodeParameters } from './parameters.ts'
import { refuseUnstorableText } from './storable.ts'
import { validationMessage } from './validation-messages.ts'
import { ifMatchOf } from './versions.ts'

/** What is looked at before an operation's own schema, on every plane that takes bearers. */

// An endpoint with all its events is below 8 KiB. What has cause to be larger says so itself.
export const ordinaryBodyLimitBytes = 64 * 1024

/** `preValidation` hooks: headers, then path and query, then what no text may hold. */
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
    'Idempotency-Key must be 1 to 255 visible ASCII characters without spaces, given once.',
  )
}

/** A `preValidation` hook, the first, for bodies that may be large. */
export async function refuseManyValues({ body }: FastifyRequest): Promise<void> {
  if (body instanceof CheckedBody) body.refuse('values')
  else if (hasManyValues(body)) throw manyValues()
}

/** A DELETE or a rotation sent without any body lacks at most a field, not a JSON object. */
export const requireBody =
  ({ body }: { body: object }) =>
  async (request: FastifyRequest): Promise<void> => {
    if (request.body !== undefined) return
    if (Object.keys(body).length > 0) {
      throw new PosternError('invalid_json', 'The body is empty; send a JSON object.')
    }
    request.body = {}
  }

/** A configuration that lacks fields is told apart from one that is wrong. */
export const bodyFault =
  ({ isCompleteConfiguration }: { isCompleteConfiguration?: true }) =>
  (faults: FastifySchemaValidationError[]): Error => {
    const missing = faults.flatMap(({ keyword, instancePath, params }) =>
      keyword === 'required' && instancePath === '' ? [`"${params['missingProperty']}"`] : [],
    )
    if (isCompleteConfiguration && missing.length > 0) {
      return new PosternError(
        'incomplete_configuration',
        `This takes the complete configuration, and the body lacks ${missing.join(', ')}. Send every field; what does not apply is null.`,
      )
    }
    return new PosternError('validation_failed', validationMessage(faults))
  }
