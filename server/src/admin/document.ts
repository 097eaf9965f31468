import Type, { type TObject, type TSchema } from 'typebox'
import type { ErrorCode } from '../platform/errors.ts'
import { Problem, statusOf } from '../platform/http/problem.ts'
import { isMutation, type Mutation, type Query } from './operation.ts'
import { Preview } from './preview.ts'
import { Reason } from './reason.ts'

/**
 * An operation as a route schema: what Fastify checks a request against, and what the OpenAPI document shows.
 */
export const methodOf = (operation: Mutation | Query): 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' =>
  isMutation(operation) ? (operation.method ?? methods[operation.kind]) : 'GET'

const methods = { create: 'POST', edit: 'PATCH', rotate: 'POST', ask: 'POST', delete: 'DELETE' } as const

export const takesIdempotencyKey = (operation: Mutation): boolean => methodOf(operation) === 'POST'

export const honoursIfMatch = ({ kind }: Mutation): boolean => kind !== 'create' && kind !== 'ask'

export const needsReasonAlways = ({ kind, reason }: Mutation): boolean =>
  reason === 'always' || kind === 'rotate' || kind === 'delete'

export function schemaOf(operation: Mutation | Query): object {
  return {
    operationId: operation.id,
    summary: operation.summary,
    description: operation.description,
    tags: [operation.id.split('.')[0]],
    security: [{ accessToken: [] }],
    params: operation.params,
    ...(isMutation(operation) ? mutationSchema(operation) : querySchema(operation)),
  }
}

/**
 * The body as it is documented. A preview may leave a required reason out, and without one the refusal is
 * `reason_required`, not a fault of the schema; so what is checked is a little wider.
 */
export function documentedBody({ body, example, ...operation }: Mutation): TObject {
  const isRequired = needsReasonAlways({ body, example, ...operation })
  const reason = { ...Reason, minLength: 1, maxLength: 500 }
  return Type.Object(
    { ...body, reason: isRequired ? reason : Type.Optional(reason) },
    { additionalProperties: false, examples: [example] },
  )
}

function querySchema(operation: Query): object {
  const { query, answer, contentType, params, hasVersion } = operation
  const isAboutSomething = Object.keys(params.properties).length > 0
  return {
    querystring: Type.Object(query, { additionalProperties: false }),
    response: {
      200: {
        ...answered('What was asked for.', answer, contentType),
        ...(hasVersion ? { headers: ETag } : {}),
      },
      ...problems(operation, 400, 401, 403, ...(isAboutSomething ? [404] : []), 429, 500),
    },
  }
}

function mutationSchema(operation: Mutation): object {
  const { body } = operation
  const headers = {
    ...(takesIdempotencyKey(operation) ? { 'idempotency-key': Type.Optional(IdempotencyKey) } : {}),
    ...(honoursIfMatch(operation) ? { 'if-match': Type.Optional(IfMatch) } : {}),
  }
  return {
    headers: Type.Object(headers),
    querystring: Type.Object(
      {
        dry_run: Type.Optional(Type.Boolean({ description: 'Tell what would change, and change nothing.' })),
      },
      { additionalProperties: false },
    ),
    body: Type.Object({ ...body, reason: Type.Optional(Reason) }, { additionalProperties: false }),
    response: {
      ...successes(operation),
      ...problems(
        operation,
        400,
        401,
        403,
        404,
        409,
        ...(honoursIfMatch(operation) ? [412] : []),
        422,
        429,
        500,
      ),
    },
  }
}

const IdempotencyKey = Type.String({
  minLength: 1,
  maxLength: 255,
  description:
    'Of your choosing. The same request again within 24 hours has the first answer and no second effect.',
})

const IfMatch = Type.String({
  description: 'The ETag of an earlier answer: refused with 412 when the resource was changed since.',
})

function successes({ kind, answer }: Mutation): object {
  const preview = 'With `dry_run=true`: what would change.'
  switch (kind) {
    case 'create':
      return {
        200: answered(preview, Preview),
        201: { ...answered('Created.', answer), headers: { Location, ...ETag, ...Replayed } },
      }
    case 'delete':
      return {
        200: answered(preview, Preview),
        204: { description: 'Deleted; the body is empty.', type: 'null' },
      }
    default:
      return {
        200: {
          ...answered(`Done. ${preview}`, answer ? (Type.Union([answer, Preview]) as TSchema) : Preview),
          headers: {
            ...(kind === 'rotate' ? { Location } : {}),
            ...ETag,
            ...(kind === 'edit' ? {} : Replayed),
          },
        },
      }
  }
}

const Location = { type: 'string', description: 'Where the resource is.' }
const ETag = { ETag: { type: 'string', description: "The resource's version, for If-Match." } }

const Replayed = {
  'Idempotent-Replayed': {
    type: 'string',
    description: '`true` where this is the answer of an earlier request.',
  },
}
const RetryAfter = { 'Retry-After': { type: 'integer', description: 'Seconds to wait.' } }

const answered = (description: string, schema: TSchema = Type.Null(), contentType = 'application/json') => ({
  description,
  content: { [contentType]: { schema } },
})

type Codes = Partial<Record<number, readonly ErrorCode[]>>

/** What every operation of its kind may answer; an operation adds its own `refusals`. */
function codesOf(operation: Mutation | Query): Codes {
  const codes = {
    400: ['invalid_json', 'invalid_parameter'],
    401: ['unauthenticated', 'token_expired'],
    403: ['admin_required', 'api_key_not_allowed'],
    404: Object.keys(operation.params.properties).length > 0 ? ['not_found'] : [],
    412: ['stale_resource'],
    429: ['rate_limited'],
    500: ['internal_error'],
  } satisfies Codes
  if (!isMutation(operation)) return { ...codes, 400: ['invalid_parameter'] }
  const own = (status: number) => (operation.refusals ?? []).filter((code) => statusOf[code] === status)
  const isPost = takesIdempotencyKey(operation)
  return {
    ...codes,
    409: [
      ...own(409),
      ...(isPost ? (['request_in_progress'] as const) : []),
      ...(operation.revealsSecret ? (['secret_already_revealed'] as const) : []),
    ],
    422: [
      'validation_failed',
      ...(needsReasonAlways(operation) ? (['reason_required'] as const) : []),
      ...(operation.isCompleteConfiguration ? (['incomplete_configuration'] as const) : []),
      ...own(422),
      ...(isPost ? (['idempotency_key_reused'] as const) : []),
    ],
  }
}

const meanings: Record<number, string> = {
  400: 'The request is not well formed',
  401: 'No access token, or not a valid one',
  403: 'The caller is no administrator',
  404: 'There is no such thing here',
  409: 'The present state stands in the way',
  412: 'The resource is not at the version of If-Match',
  422: 'The request breaks a rule',
  429: 'Too many requests; Retry-After says when to go on',
  500: 'A fault on our side; X-Request-Id finds it in the log',
}

function problems(operation: Mutation | Query, ...statuses: number[]): object {
  const codes = codesOf(operation)
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
