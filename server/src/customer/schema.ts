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

/** An operation as route schemas: what Fastify checks a request against, and what the OpenAPI document shows. */
export function methodOf(operation: CustomerOperation): 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' {
  switch (operation.shape) {
    case 'query':
    case 'user query':
      return 'GET'
    case 'own':
      return operation.method
    default:
      return methodOfKind[operation.kind]
  }
}

export const takesIdempotencyKey = (operation: CustomerOperation): boolean =>
  operation.shape === 'own' ? operation.takesIdempotencyKey === true : methodOf(operation) === 'POST'

/** Where it is reached, and for whom that way is. */
export interface Place {
  url: string
  project: Access['project']
}

export function placesOf(operation: CustomerOperation): Place[] {
  if (operation.shape === 'user mutation' || operation.shape === 'user query') {
    return [{ url: operation.path, project: 'none' }]
  }
  const { path, pathOfKey } = operation
  const ofKey: Place[] = pathOfKey === undefined ? [] : [{ url: pathOfKey, project: 'of key' }]
  return [{ url: path, project: 'in path' }, ...ofKey]
}

/** In the document the ids of customers' operations have a word before them: the administrators' are called the same. */
const documentedId = ({ id }: CustomerOperation, project: Access['project']): string =>
  `customer.${id}${project === 'of key' ? '-by-key' : ''}`

export function schemaOf(operation: CustomerOperation, { project }: Place): object {
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
  const headers =
    operation.shape === 'own'
      ? mutationHeaders('create', takesIdempotencyKey(operation))
      : mutationHeaders(operation.kind, takesIdempotencyKey(operation))
  return {
    querystring,
    headers,
    ...(methodOf(operation) === 'GET'
      ? {}
      : { body: Type.Object(body, { additionalProperties: false, examples: [example] }) }),
  }
}

function successesOf(operation: CustomerOperation): object {
  switch (operation.shape) {
    case 'query':
    case 'user query': {
      const hasVersion = 'hasVersion' in operation && operation.hasVersion
      return {
        200: {
          ...answered('What was asked for.', operation.answer),
          ...(hasVersion ? { headers: ETag } : {}),
        },
      }
    }
    case 'own': {
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
  ask: 'Done.',
  enqueue: 'Accepted; it is begun within seconds.',
}

function problemsOf(operation: CustomerOperation): number[] {
  const isAboutSomething = operation.shape !== 'user query'
  const reading = [400, 401, 403, ...(isAboutSomething ? [404] : []), 429, 500]
  switch (operation.shape) {
    case 'query':
    case 'user query':
      return reading
    case 'own': {
      const own = (operation.refusals ?? []).map((code) => statusOf[code])
      const repeating = operation.takesIdempotencyKey ? [409] : []
      const body = operation.method === 'GET' ? [] : [422]
      return [...new Set([...reading, ...own, ...repeating, ...body])].sort()
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
  return isRead ? codes : { ...codes, ...ruleCodes(operation, takesIdempotencyKey(operation)) }
}

const meanings = {
  401: 'No access token and no API key, or not a valid one',
  403: 'The caller may not do this in the project',
}
