import Type from 'typebox'
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
import { DryRun, Preview } from './preview.ts'
import { alwaysNeedsReason, Reason } from './reason.ts'
import { allowedFields, allowedRights, isForEveryone } from './rights.ts'

/** Route schemas of administrative operations, for validation by Fastify and for the OpenAPI document. */
export const methodOf = (operation: Mutation | Query): 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' =>
  isMutation(operation) ? (operation.method ?? methodOfKind[operation.kind]) : operation.body ? 'POST' : 'GET'

export const honoursIfMatch = ({ kind }: Mutation): boolean => comparesVersions(kind)

export function schemaOf(operation: Mutation | Query): object {
  return {
    operationId: operation.id,
    summary: operation.summary,
    description: operation.description,
    tags: [operation.id.split('.')[0]],
    security: [{ accessToken: [] }],
    'x-rights': allowedRights[operation.id],
    ...(allowedFields[operation.id] && { 'x-rights-fields': allowedFields[operation.id] }),
    params: operation.params,
    ...(isMutation(operation) ? mutationSchema(operation) : querySchema(operation)),
  }
}

const accepted = 'Accepted. Processing starts within seconds.'

function querySchema(operation: Query): object {
  const { query, body, status = 200, answer, contentType, params, hasVersion } = operation
  const isAboutSomething = Object.keys(params.properties).length > 0
  return {
    querystring: Type.Object(query, { additionalProperties: false }),
    ...(body && {
      body: Type.Object(body.fields, { additionalProperties: false, examples: [body.example] }),
    }),
    response: {
      [status]: {
        ...answered(status === 202 ? accepted : 'The requested data.', answer, contentType),
        ...(hasVersion ? { headers: ETag } : {}),
      },
      ...problems(
        [400, 401, 403, ...(isAboutSomething ? [404] : []), ...(body ? [422] : []), 429, 500],
        codesOf(operation),
        meanings,
      ),
    },
  }
}

function mutationSchema(operation: Mutation): object {
  const { kind, body } = operation
  return {
    headers: mutationHeaders(kind),
    querystring: DryRun,
    'x-dry-run-response': dryRunResponse,
    body: Type.Object({ ...body, reason: Type.Optional(Reason) }, { additionalProperties: false }),
    response: {
      ...successes(operation),
      ...problems(mutationProblems(kind), codesOf(operation), meanings),
    },
  }
}

/**
 * The response to `dry_run=true`. OpenAPI allows one response per status, and a union in every 200 would complicate
 * generated clients. The 200 response of an edit therefore documents the resource, and this extension documents the
 * preview.
 */
const dryRunResponse = {
  description: 'With `dry_run=true`, status 200: a preview of the changes.',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Preview' } } },
}

function successes({ kind, answer, hasVersion, hasLocation }: Mutation): object {
  const preview = 'With `dry_run=true`: a preview of the changes.'
  switch (kind) {
    case 'create':
      return {
        200: answered(preview, Preview),
        201: { ...answered('Created.', answer), headers: successHeaders(kind, hasVersion) },
      }
    case 'enqueue':
      return {
        200: answered(preview, Preview),
        202: {
          ...answered(accepted, answer),
          headers: successHeaders(kind, false, hasLocation),
        },
      }
    case 'delete':
      return { 200: answered(preview, Preview), 204: deleted }
    default:
      return {
        200: {
          ...answered('Done.', answer),
          headers: successHeaders(kind, hasVersion),
        },
      }
  }
}

/** The error codes by status: those that the operation's kind defines, and the operation's own `refusals`. */
function codesOf(operation: Mutation | Query): Codes {
  const codes = {
    400: ['invalid_json', 'invalid_parameter'],
    401: ['unauthenticated', 'token_expired'],
    403: [
      'admin_required',
      'api_key_not_allowed',
      ...(isForEveryone(operation.id) ? [] : (['insufficient_rights'] as const)),
    ],
    404: Object.keys(operation.params.properties).length > 0 ? ['not_found'] : [],
    412: ['stale_resource'],
    429: ['rate_limited'],
    500: ['internal_error'],
  } satisfies Codes
  if (!isMutation(operation))
    return operation.body
      ? { ...codes, 422: ['validation_failed', ...(operation.refusals ?? [])] }
      : { ...codes, 400: ['invalid_parameter'] }
  const rules = ruleCodes(operation)
  const reason = alwaysNeedsReason(operation) ? (['reason_required'] as const) : []
  return { ...codes, ...rules, 422: rules[422].toSpliced(1, 0, ...reason) }
}

const meanings = {
  401: 'The access token is missing or invalid',
  403: 'The caller is not an administrator, or does not have the rights',
}
