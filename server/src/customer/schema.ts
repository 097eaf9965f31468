import Type, { type TObject } from 'typebox'
import type { ErrorCode } from '../platform/errors.ts'
import { methodOfKind, successOfKind } from '../platform/http/kinds.ts'
import { NoParams, ProjectParams } from '../platform/http/parameters.ts'
import { statusOf } from '../platform/http/problem.ts'
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
import type { Access } from './authenticate-request.ts'
import type { CustomerOperation } from './operation.ts'
import { neededScopes } from './scopes.ts'

/** Route schemas of customers' operations: what Fastify validates requests against and what the OpenAPI document shows. */
export function methodOf(operation: CustomerOperation): 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' {
  switch (operation.shape) {
    case 'query':
    case 'user query':
      return 'GET'
    case 'custom':
      return operation.method
    default:
      return methodOfKind[operation.kind]
  }
}

/** A path of an operation, and whose project it is about. */
export interface RoutePath {
  url: string
  project: Access['project']
}

export function routePathsOf(operation: CustomerOperation): RoutePath[] {
  if (operation.shape === 'user mutation' || operation.shape === 'user query') {
    return [{ url: operation.path, project: 'none' }]
  }
  const { path, pathOfKey } = operation
  const ofKey: RoutePath[] = pathOfKey === undefined ? [] : [{ url: pathOfKey, project: 'of key' }]
  return [{ url: path, project: 'in path' }, ...ofKey]
}

/** In the document the ids of customers' operations have a word before them: the administrators' are called the same. */
const documentedId = ({ id }: CustomerOperation, project: Access['project']): string =>
  `customer.${id}${project === 'of key' ? '-by-key' : ''}`

export function schemaOf(operation: CustomerOperation, { project }: RoutePath): object {
  const { id, summary, description } = operation
  const isForKeys = neededScopes[id] !== null
  return {
    operationId: documentedId(operation, project),
    summary,
    description: project === 'of key' ? `${description} The project is that of the API key.` : description,
    tags: [`customer.${id.split('.')[0]}`],
    security: [
      ...(project === 'of key' ? [] : [{ accessToken: [] }]),
      ...(isForKeys ? [{ apiKey: [] }] : []),
    ],
    params: paramsOf(operation, project),
    ...requestOf(operation),
    response: {
      ...successesOf(operation),
      ...problems(problemsOf(operation), codesOf(operation, project), meanings),
    },
  }
}

function paramsOf(operation: CustomerOperation, project: Access['project']): TObject {
  const own = 'params' in operation ? operation.params : NoParams
  return project === 'in path'
    ? Type.Object({ ...ProjectParams.properties, ...own.properties }, { additionalProperties: false })
    : own
}

function requestOf(operation: CustomerOperation): object {
  const querystring = Type.Object('query' in operation ? operation.query : {}, {
    additionalProperties: false,
  })
  if (operation.shape === 'query' || operation.shape === 'user query') return { querystring }
  const { body, example } = operation
  const headers = mutationHeaders(operation.shape === 'custom' ? 'create' : operation.kind)
  return {
    querystring,
    ...(methodOf(operation) === 'GET'
      ? {}
      : { headers, body: Type.Object(body, { additionalProperties: false, examples: [example] }) }),
  }
}

function successesOf(operation: CustomerOperation): object {
  switch (operation.shape) {
    case 'query':
    case 'user query': {
      const hasVersion = 'hasVersion' in operation && operation.hasVersion
      return {
        200: {
          ...answered('The requested data.', operation.answer),
          ...(hasVersion ? { headers: ETag } : {}),
        },
      }
    }
    case 'custom': {
      const { status, means } = operation.success
      return {
        [status]: operation.answer ? answered(means, operation.answer) : { ...deleted, description: means },
      }
    }
    default: {
      const { kind, answer } = operation
      if (kind === 'delete') return { 204: deleted }
      const headers = successHeaders(kind, kind !== 'enqueue')
      return { [successOfKind[kind]]: { ...answered(meaningOf[kind], answer), headers } }
    }
  }
}

const meaningOf = {
  create: 'Created.',
  edit: 'Done.',
  rotate: 'Done.',
  command: 'Done.',
  enqueue: 'Accepted; work starts within seconds.',
}

function problemsOf(operation: CustomerOperation): number[] {
  const isAboutSomething = operation.shape !== 'user query'
  const reading = [400, 401, 403, ...(isAboutSomething ? [404] : []), 429, 500]
  switch (operation.shape) {
    case 'query':
    case 'user query':
      return reading
    case 'custom': {
      const own = (operation.refusals ?? []).map((code) => statusOf[code])
      const mutating = operation.method === 'GET' ? [] : [409, 422]
      return [...new Set([...reading, ...own, ...mutating])].sort()
    }
    default:
      return mutationProblems(operation.kind)
  }
}

function codesOf(operation: CustomerOperation, project: Access['project']): Codes {
  const own: readonly ErrorCode[] = 'refusals' in operation ? (operation.refusals ?? []) : []
  const ownOf = (status: number) => own.filter((code) => statusOf[code] === status)
  const isRead = operation.shape === 'query' || operation.shape === 'user query'
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
  403: 'The caller may not do this in the project',
}
