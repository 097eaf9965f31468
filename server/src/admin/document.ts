import Type, { type TObject, type TSchema } from 'typebox'
import { Problem } from '../platform/http/problem.ts'
import { isMutation, type Kind, type Mutation, type Query } from './operation.ts'
import { Preview } from './preview.ts'
import { Reason } from './reason.ts'

/**
 * An operation as a route schema: what Fastify checks a request against, and what the OpenAPI document shows.
 */
export const methodOf = (operation: Mutation | Query): 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' =>
  isMutation(operation) ? (operation.method ?? methods[operation.kind]) : 'GET'

const methods = { create: 'POST', edit: 'PATCH', rotate: 'POST', delete: 'DELETE' } as const

export const takesIdempotencyKey = (operation: Mutation): boolean => methodOf(operation) === 'POST'

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
  return Type.Object(
    { ...body, reason: isRequired ? Reason : Type.Optional(Reason) },
    { additionalProperties: false, examples: [example] },
  )
}

function querySchema({ query, answer, contentType, params }: Query): object {
  return {
    querystring: Type.Object(query, { additionalProperties: false }),
    response: {
      200: answered('What was asked for.', answer, contentType),
      ...problems(400, 401, 403),
      ...(Object.keys(params.properties).length > 0 ? problems(404) : {}),
      ...problems(429, 500),
    },
  }
}

function mutationSchema(operation: Mutation): object {
  const { kind, body, answer } = operation
  const headers = {
    ...(takesIdempotencyKey(operation) ? { 'idempotency-key': Type.Optional(IdempotencyKey) } : {}),
    ...(kind === 'create' ? {} : { 'if-match': Type.Optional(IfMatch) }),
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
      ...successes(kind, answer),
      ...problems(400, 401, 403, 404, 409),
      ...(kind === 'create' ? {} : problems(412)),
      ...problems(422, 429, 500),
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

function successes(kind: Kind, answer: TSchema | undefined): object {
  const preview = 'With `dry_run=true`: what would change.'
  switch (kind) {
    case 'create':
      return {
        200: answered(preview, Preview),
        201: { ...answered('Created.', answer), headers: { Location, ...ETag } },
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
          headers: ETag,
        },
      }
  }
}

const Location = { type: 'string', description: 'Where the new resource is.' }
const ETag = { ETag: { type: 'string', description: "The resource's version, for If-Match." } }

const answered = (description: string, schema: TSchema = Type.Null(), contentType = 'application/json') => ({
  description,
  content: { [contentType]: { schema } },
})

const reasons: Record<number, string> = {
  400: '`invalid_json`, `invalid_parameter`: the request is not well formed.',
  401: '`unauthenticated`, `token_expired`: no access token, or not a valid one.',
  403: '`admin_required`, `api_key_not_allowed`: the caller is no administrator.',
  404: '`not_found`: there is no such thing, or it belongs to another project.',
  409: 'The present state stands in the way: `already_exists`, `in_use`, `last_owner`, `last_administrator`, `request_in_progress`, `secret_already_revealed`.',
  412: '`stale_resource`: the resource is not at the version of If-Match.',
  422: 'The request breaks a rule: `validation_failed`, `reason_required`, `limit_exceeded`, `incomplete_configuration`, `plan_inactive`, `idempotency_key_reused`.',
  429: '`rate_limited`: too many requests; Retry-After says when to go on.',
  500: '`internal_error`: a fault on our side; X-Request-Id finds it in the log.',
}

const problems = (...statuses: number[]): object =>
  Object.fromEntries(statuses.map((status) => [status, answered(reasons[status] ?? '', Problem)]))
