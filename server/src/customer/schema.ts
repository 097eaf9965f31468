import Type, { type TObject } from 'typebox'
import type { ErrorCode } from '../platform/errors.ts'
import { comparesVersions, type Kind, methodOfKind, successOfKind } from '../platform/http/kinds.ts'
import { ProjectParams } from '../platform/http/parameters.ts'
import { statusOf } from '../platform/http/problem.ts'
import {
  answered,
  type Codes,
  deleted,
  ETag,
  mutationHeaders,
  mutationProblems,
  problems,
  Replayed,
  ruleCodes,
  successHeaders,
} from '../platform/http/route-schema.ts'
import type { Access } from './authenticate-request.ts'
import type { CustomerOperation, Mutation } from './operation.ts'
import { allowedRoles } from './roles.ts'
import { neededScopes } from './scopes.ts'

/** Route schemas of customers' operations, for validation by Fastify and for the OpenAPI document. */
export function methodOf(operation: CustomerOperation): 'GET' | 'POST' | 'PATCH' | 'DELETE' {
  if (operation.shape === 'query') return 'GET'
  return operation.shape === 'custom' ? operation.method : methodOfKind[operation.kind]
}

/** Resources in the mail database have no version. */
export const honoursIfMatch = ({ kind, runsIn }: Mutation): boolean =>
  runsIn !== 'mail' && comparesVersions(kind)

/** A path of an operation, and how the request specifies its project. */
export interface RoutePath {
  url: string
  project: Access['project']
}

export function routePathsOf(operation: CustomerOperation): RoutePath[] {
  const { path, pathOfKey } = operation
  if (operation.shape !== 'custom' && operation.runsIn === 'user') return [{ url: path, project: 'none' }]
  const ofKey: RoutePath[] = pathOfKey === undefined ? [] : [{ url: pathOfKey, project: 'of key' }]
  return [{ url: path, project: 'in path' }, ...ofKey]
}

/** The OpenAPI document prefixes the ids of customers' operations, because administrators' operations have the same ids. */
const documentedId = ({ id }: CustomerOperation, project: Access['project']): string =>
  `customer.${id}${project === 'of key' ? '-by-key' : ''}`

export function schemaOf(operation: CustomerOperation, { project }: RoutePath): object {
  const { id, summary, description } = operation
  const scope = neededScopes[id]
  const roles = allowedRoles[id]
  return {
    operationId: documentedId(operation, project),
    summary,
    description: project === 'of key' ? `${description} The API key determines the project.` : description,
    tags: [`customer.${id.split('.')[0]}`],
    security: [
      ...(project === 'of key' ? [] : [{ accessToken: [] }]),
      ...(scope === null ? [] : [{ apiKey: [] }]),
    ],
    ...(scope !== null && { 'x-scopes': [scope] }),
    ...(project === 'in path' && roles !== 'signed in' && { 'x-roles': roles }),
    params: paramsOf(operation, project),
    ...requestOf(operation),
    response: {
      ...successesOf(operation),
      ...problems(problemsOf(operation), codesOf(operation, project), meanings),
    },
  }
}

const paramsOf = ({ params }: CustomerOperation, project: Access['project']): TObject =>
  project === 'in path'
    ? Type.Object({ ...ProjectParams.properties, ...params.properties }, { additionalProperties: false })
    : params

function requestOf(operation: CustomerOperation): object {
  const query = operation.shape === 'mutation' ? {} : operation.query
  const querystring = Type.Object(query, { additionalProperties: false })
  if (operation.shape === 'query') return { querystring }
  const { body, example } = operation
  return {
    querystring,
    headers: mutationHeaders(kindOf(operation)),
    body: Type.Object(body, { additionalProperties: false, examples: [example] }),
  }
}

/** The kind with the same request headers and error statuses. */
const kindOf = (operation: CustomerOperation & { shape: 'mutation' | 'custom' }): Kind =>
  operation.shape === 'mutation' && honoursIfMatch(operation) ? operation.kind : 'create'

function successesOf(operation: CustomerOperation): object {
  switch (operation.shape) {
    case 'query': {
      const { answer, hasVersion } = operation
      return { 200: { ...answered('The requested data.', answer), ...(hasVersion ? { headers: ETag } : {}) } }
    }
    case 'custom': {
      const { status, means } = operation.success
      return { [status]: { ...answered(means, operation.answer), headers: Replayed } }
    }
    case 'mutation': {
      const { kind, answer, means = meaningOf[kind], runsIn, hasVersion = kind !== 'enqueue' } = operation
      if (kind === 'delete') return { 204: { ...deleted, description: means } }
      const headers = successHeaders(kind, hasVersion && runsIn !== 'mail')
      return { [successOfKind[kind]]: { ...answered(means, answer), headers } }
    }
  }
}

const meaningOf = {
  create: 'Created.',
  edit: 'Done.',
  rotate: 'Done.',
  command: 'Done.',
  enqueue: 'Accepted. Processing starts within seconds.',
  delete: deleted.description,
}

function problemsOf(operation: CustomerOperation): number[] {
  if (operation.shape !== 'query') return mutationProblems(kindOf(operation))
  return [400, 401, 403, ...(operation.runsIn === 'user' ? [] : [404]), 429, 500]
}

function codesOf(operation: CustomerOperation, project: Access['project']): Codes {
  const isRead = operation.shape === 'query'
  const own: readonly ErrorCode[] = isRead ? [] : (operation.refusals ?? [])
  const ownOf = (status: number) => own.filter((code) => statusOf[code] === status)
  const codes: Codes = {
    400: isRead ? ['invalid_parameter'] : ['invalid_json', 'invalid_parameter'],
    401: ['unauthenticated', 'token_expired'],
    403: [
      ...(project === 'none' ? [] : (['insufficient_role'] as const)),
      'insufficient_scope',
      'address_not_allowed',
      ...ownOf(403),
    ],
    404: project === 'none' ? ownOf(404) : ['not_found'],
    412: ['stale_resource'],
    429: ['rate_limited', ...ownOf(429)],
    500: ['internal_error'],
  }
  return isRead ? codes : { ...codes, ...ruleCodes(operation) }
}

const meanings = {
  401: 'The access token or API key is missing or invalid',
  403: 'The caller is not allowed to do this in the project',
}
