import Type, { type TObject, type TSchema } from 'typebox'
import { comparesVersions, methodOfKind } from '../platform/http/kinds.ts'
import {
  answered,
  type Codes,
  deleted,
  ETag,
  mutationHeaders,
  mutationProblems,
  problems,
  ruleCodes,
  successHeaders,
} from '../platform/http/route-schema.ts'
import { isMutation, type Mutation, type Query } from './operation.ts'
import { Preview } from './preview.ts'
import { Reason } from './reason.ts'

/**
 * An operation as a route schema: what Fastify checks a request against, and what the OpenAPI document shows.
 */
export const methodOf = (operation: Mutation | Query): 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' =>
  isMutation(operation) ? (operation.method ?? methodOfKind[operation.kind]) : 'GET'

export const takesIdempotencyKey = (operation: Mutation): boolean => methodOf(operation) === 'POST'

export const honoursIfMatch = ({ kind }: Mutation): boolean => comparesVersions(kind)

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
      ...problems(
        [400, 401, 403, ...(isAboutSomething ? [404] : []), 429, 500],
        codesOf(operation),
        meanings,
      ),
    },
  }
}

function mutationSchema(operation: Mutation): object {
  const { kind, body } = operation
  return {
    headers: mutationHeaders(kind, takesIdempotencyKey(operation)),
    querystring: Type.Object(
      {
        dry_run: Type.Optional(Type.Boolean({ description: 'Tell what would change, and change nothing.' })),
      },
      { additionalProperties: false },
    ),
    body: Type.Object({ ...body, reason: Type.Optional(Reason) }, { additionalProperties: false }),
    response: {
      ...successes(operation),
      ...problems(mutationProblems(kind), codesOf(operation), meanings),
    },
  }
}

function successes({ kind, answer, hasVersion }: Mutation): object {
  const preview = 'With `dry_run=true`: what would change.'
  switch (kind) {
    case 'create':
      return {
        200: answered(preview, Preview),
        201: { ...answered('Created.', answer), headers: successHeaders(kind) },
      }
    case 'enqueue':
      return {
        200: answered(preview, Preview),
        202: {
          ...answered('Accepted; it is begun within seconds.', answer),
          headers: successHeaders(kind, false),
        },
      }
    case 'delete':
      return { 200: answered(preview, Preview), 204: deleted }
    default:
      return {
        200: {
          ...answered(`Done. ${preview}`, answer ? (Type.Union([answer, Preview]) as TSchema) : Preview),
          headers: successHeaders(kind, hasVersion),
        },
      }
  }
}

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
  const rules = ruleCodes(operation, takesIdempotencyKey(operation))
  const reason = needsReasonAlways(operation) ? (['reason_required'] as const) : []
  return { ...codes, ...rules, 422: rules[422].toSpliced(1, 0, ...reason) }
}

const meanings = { 401: 'No access token, or not a valid one', 403: 'The caller is no administrator' }
