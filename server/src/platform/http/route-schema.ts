import Type, { type TSchema } from 'typebox'
import type { ErrorCode } from '../errors.ts'
import { comparesVersions, type Kind } from './kinds.ts'
import { Problem, statusOf } from './problem.ts'

/** Pieces of route schemas: what Fastify checks a request against, and what the OpenAPI document shows. */

const IdempotencyKey = Type.String({
  minLength: 1,
  maxLength: 255,
  description:
    'Of your choosing. The same request again within 24 hours has the first answer and no second effect.',
})

const IfMatch = Type.String({
  description: 'The ETag of an earlier answer: refused with 412 when the resource was changed since.',
})

/** The headers of a request that changes something. */
export const mutationHeaders = (kind: Kind, takesIdempotencyKey: boolean) =>
  Type.Object({
    ...(takesIdempotencyKey ? { 'idempotency-key': Type.Optional(IdempotencyKey) } : {}),
    ...(comparesVersions(kind) ? { 'if-match': Type.Optional(IfMatch) } : {}),
  })

const Location = { type: 'string', description: 'Where the resource is.' }
export const ETag = { ETag: { type: 'string', description: "The resource's version, for If-Match." } }

const Replayed = {
  'Idempotent-Replayed': {
    type: 'string',
    description: '`true` where this is the answer of an earlier request.',
  },
}
const RetryAfter = { 'Retry-After': { type: 'integer', description: 'Seconds to wait.' } }

/** The headers of a success. */
export const successHeaders = (kind: Kind, hasVersion = true): object => ({
  ...(kind === 'create' || kind === 'rotate' ? { Location } : {}),
  ...(hasVersion ? ETag : {}),
  ...(kind === 'edit' ? {} : Replayed),
})

export const deleted = { description: 'Deleted; the body is empty.', type: 'null' }

export const answered = (
  description: string,
  schema: TSchema = Type.Null(),
  contentType = 'application/json',
) => ({
  description,
  content: { [contentType]: { schema } },
})

/** The statuses that every mutation of a kind may end with, besides its success. */
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

/** What an operation may be refused with because of what it is, besides its own rules. */
interface Refusing {
  refusals?: readonly ErrorCode[]
  revealsSecret?: true
  isCompleteConfiguration?: true
}

/** 409 and 422 of a mutation: by its own rules, and by the manners of its kind. */
export function ruleCodes(
  { refusals = [], revealsSecret, isCompleteConfiguration }: Refusing,
  takesIdempotencyKey: boolean,
): { 409: ErrorCode[]; 422: ErrorCode[] } {
  const own = (status: number) => refusals.filter((code) => statusOf[code] === status)
  return {
    409: [
      ...own(409),
      ...(takesIdempotencyKey ? (['request_in_progress'] as const) : []),
      ...(revealsSecret ? (['secret_already_revealed'] as const) : []),
    ],
    422: [
      'validation_failed',
      ...(isCompleteConfiguration ? (['incomplete_configuration'] as const) : []),
      ...own(422),
      ...(takesIdempotencyKey ? (['idempotency_key_reused'] as const) : []),
    ],
  }
}

const commonMeanings = {
  400: 'The request is not well formed',
  404: 'There is no such thing here',
  409: 'The present state stands in the way',
  412: 'The resource is not at the version of If-Match',
  422: 'The request breaks a rule',
  429: 'Too many requests; Retry-After says when to go on',
  500: 'A fault on our side; X-Request-Id finds it in the log',
}

/** The failures of an operation as responses; what 401 and 403 mean is the plane's to say. */
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
        listed.length > 0 ? meaning : `${meanings[status]}. Nothing in this operation does at present.`
      return [
        status,
        { ...answered(description, Problem), ...(status === 429 ? { headers: RetryAfter } : {}) },
      ]
    }),
  )
}
