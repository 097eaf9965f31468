import Type, { type TSchema } from 'typebox'
import type { ErrorCode } from '../errors.ts'
import { comparesVersions, type Kind } from './kinds.ts'
import { Problem, statusOf } from './problem.ts'

/** Parts of route schemas, used for validation and for the OpenAPI document. */

const IdempotencyKey = Type.String({
  minLength: 1,
  maxLength: 255,
  description:
    'A value of your choice: visible ASCII characters without spaces. Repeating the same request within 24 hours returns the first response, with the header `Idempotent-Replayed: true`, and has no further effect.',
})

const IfMatch = Type.String({
  description:
    'The `ETag` from an earlier response. If the resource has changed since, the request is rejected with 412. Without this header, the request is not compared with the current version.',
})

/** The request headers of a mutation. */
export const mutationHeaders = (kind: Kind) =>
  Type.Object({
    'idempotency-key': Type.Optional(IdempotencyKey),
    ...(comparesVersions(kind) ? { 'if-match': Type.Optional(IfMatch) } : {}),
  })

const Location = { type: 'string', description: 'The path of the resource.' }
export const ETag = { ETag: { type: 'string', description: "The resource's version, for If-Match." } }

export const Replayed = {
  'Idempotent-Replayed': {
    type: 'string',
    description:
      '`true` if this is the stored response to an earlier request with the same `Idempotency-Key`. Otherwise, the header is absent.',
  },
}
const RetryAfter = { 'Retry-After': { type: 'integer', description: 'Seconds to wait.' } }

/** The response headers on success. */
export const successHeaders = (
  kind: Kind,
  hasVersion = true,
  hasLocation = kind === 'create' || kind === 'rotate',
): object => ({
  ...(hasLocation ? { Location } : {}),
  ...(hasVersion ? ETag : {}),
  ...Replayed,
})

export const deleted = {
  description: 'The resource is deleted. The response has no body.',
  type: 'null',
  headers: Replayed,
}

export const answered = (
  description: string,
  schema: TSchema = Type.Null(),
  contentType = 'application/json',
) => ({
  description,
  content: { [contentType]: { schema } },
})

/** The error statuses that apply to every mutation of a kind. */
export const mutationProblems = (kind: Kind): number[] => [
  400,
  401,
  403,
  404,
  409,
  ...(comparesVersions(kind) ? [412] : []),
  422,
  429,
  500,
]

export type Codes = Partial<Record<number, readonly ErrorCode[]>>

/** The properties of an operation that determine its error codes. */
interface Refusing {
  refusals?: readonly ErrorCode[]
  revealsSecret?: true
  isCompleteConfiguration?: true
}

/** A mutation's error codes for 409 and 422: its own, and those of its kind. */
export function ruleCodes({ refusals = [], revealsSecret, isCompleteConfiguration }: Refusing): {
  409: ErrorCode[]
  422: ErrorCode[]
} {
  const own = (status: number) => refusals.filter((code) => statusOf[code] === status)
  return {
    409: [
      ...own(409),
      'request_in_progress',
      ...(revealsSecret ? (['secret_already_revealed'] as const) : []),
    ],
    422: [
      'validation_failed',
      ...(isCompleteConfiguration ? (['incomplete_configuration'] as const) : []),
      ...own(422),
      'idempotency_key_reused',
    ],
  }
}

const commonMeanings = {
  400: 'The request is malformed',
  404: 'The resource does not exist',
  409: 'The request conflicts with the current state',
  412: 'The version of the resource differs from If-Match',
  422: 'The request violates a rule',
  429: 'Too many requests; Retry-After says how long to wait',
  500: 'Internal error; look up X-Request-Id in the log',
}

/** The error responses of an operation. Each plane describes its 401 and 403. */
export function problems(
  statuses: readonly number[],
  codes: Codes,
  planeMeanings: Record<401 | 403, string>,
): object {
  const meanings: Record<number, string> = { ...commonMeanings, ...planeMeanings }
  return Object.fromEntries(
    statuses.map((status) => {
      const listed = codes[status] ?? []
      const meaning = `${meanings[status]}: ${listed.map((code) => `\`${code}\``).join(', ')}.`
      const description =
        listed.length > 0 ? meaning : `${meanings[status]}. Currently not returned by this operation.`
      return [
        status,
        { ...answered(description, Problem), ...(status === 429 ? { headers: RetryAfter } : {}) },
      ]
    }),
  )
}
