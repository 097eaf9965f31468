/**
 * Generates the console's API client from the OpenAPI document: the types of the operations that each entrance calls,
 * keyed by operation id. The existing generators need the TypeScript 5 API, which TypeScript 7 no longer provides, and
 * the console's needs are simpler: one name per operation, and separate types for the responses of a preview and of the
 * operation itself.
 */
interface Schema {
  $ref?: string
  type?: string
  enum?: string[]
  const?: unknown
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
}

interface Operation {
  operationId: string
  summary: string
  parameters?: { name: string; in: string; required?: boolean; schema: Schema }[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>
  'x-rights'?: string[]
  'x-rights-fields'?: Record<string, string[]>
  'x-roles'?: string[]
}

export interface OpenapiDocument {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

const isPreview = ({ $ref }: Schema): boolean => $ref === '#/components/schemas/Preview'

/** The operations of signing in belong to both entrances. */
const groups = {
  signin: ({ path }: Listed) => path.startsWith('/v1/auth/') || path === '/v1/installation',
  admin: ({ path }: Listed) => path.startsWith('/v1/admin/'),
  // A browser sends an access token and never an API key.
  app: ({ operation: { operationId: id } }: Listed) => id.startsWith('customer.') && !id.endsWith('-by-key'),
}

interface Listed {
  path: string
  method: string
  operation: Operation
}

const listed = ({ paths }: OpenapiDocument): Listed[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )

const header = '// Generated from openapi/postern.v1.json by `npm run generate`.'

/** What both entrances share: the types of the API, and the operations of signing in. */
export function sharedClient(document: OpenapiDocument): string {
  const all = listed(document)
  const types = typesOf(all.filter((one) => Object.values(groups).some((isIn) => isIn(one))))
  const named = schemasIn(types, document.components.schemas)
  const signin = all.filter(groups.signin)
  return `${header}

${named.map(([name, schema]) => `export interface ${name} ${typeOf(schema)}`).join('\n\n')}

/** Each entrance adds its operations. */
export interface Operations {
${typesOf(signin)}
}

/** \`read\`: a POST that changes nothing. */
export type OperationEntry = readonly [method: string, path: string, kind?: 'read']

export const signinOperations: Record<string, OperationEntry> = {
${signin.map(operationEntry).join('\n')}
}
`
}

/** The operations of the customers' entrance, and the roles that allow them. */
export function appClient(document: OpenapiDocument): string {
  const operations = listed(document).filter(groups.app)
  const limited = operations.flatMap(({ operation: { operationId: id, 'x-roles': roles } }) =>
    roles ? [`  '${id}': ${JSON.stringify(roles)},`] : [],
  )
  return `${entranceClient(operations)}
/** The roles in a project that allow each operation. All other operations are for every signed-in user. */
export const allowedRoles: Record<string, readonly string[]> = {
${limited.join('\n')}
}
`
}

/** The operations of the administrators' entrance, and who can call them. */
export function adminClient(document: OpenapiDocument): string {
  const operations = listed(document).filter(groups.admin)
  return `${entranceClient(operations)}
/** The rights, other than full, that allow each administrative mutation: all of it, or some fields. */
export const limitedRights = {
${operations
  .filter(({ operation }) => hasPreview(operation))
  .map(({ operation }) => `  '${operation.operationId}': ${limitedRightsOf(operation)},`)
  .join('\n')}
} as const
`
}

const entranceClient = (operations: Listed[]): string => `${header}

import type { OperationEntry } from '../api/operations.gen.ts'

declare module '../api/operations.gen.ts' {
  interface Operations {
${typesOf(operations)}
  }
}

export const operations: Record<string, OperationEntry> = {
${operations.map(operationEntry).join('\n')}
}
`

const typesOf = (operations: Listed[]): string =>
  operations.map(({ operation }) => operationType(operation)).join('\n')

/** Every administrative mutation has a preview. */
function operationEntry({ operation, method, path }: Listed): string {
  const isRead = method === 'POST' && path.startsWith('/v1/admin/') && !hasPreview(operation)
  return `  '${operation.operationId}': ['${method}', '${path}'${isRead ? `, 'read'` : ''}],`
}

const hasPreview = ({ parameters = [] }: Operation): boolean =>
  parameters.some(({ name }) => name === 'dry_run')

function limitedRightsOf({ 'x-rights': rights = [], 'x-rights-fields': fields = {} }: Operation): string {
  const limited = rights.filter((name) => name !== 'full')
  return JSON.stringify(Object.fromEntries(limited.map((name) => [name, fields[name] ?? true])))
}

function operationType(operation: Operation): string {
  const { operationId, summary, parameters = [], requestBody, responses } = operation
  const given = (place: string) => parameters.filter((one) => one.in === place && one.name !== 'dry_run')
  const group = (place: string) =>
    `{ ${given(place)
      .map(({ name, required, schema }) => `${name}${required ? '' : '?'}: ${typeOf(schema)}`)
      .join('; ')} }`
  const success = Object.entries(responses).filter(([status]) => status.startsWith('2'))
  const answers = success.flatMap(([, { content }]) => {
    const schema = content?.['application/json']?.schema
    return schema ? (schema.anyOf ?? [schema]).filter((one) => !isPreview(one)) : []
  })
  const body = requestBody?.content['application/json']?.schema
  return `  /** ${summary} */
  '${operationId}': {
    path: ${group('path')}
    query: ${group('query')}
    body: ${body ? typeOf(body) : 'undefined'}
    answer: ${[...new Set(answers.map(typeOf))].join(' | ') || 'undefined'}
    hasPreview: ${hasPreview(operation)}
  }`
}

/** The schemas referenced by the operations, directly or indirectly. */
function schemasIn(text: string, schemas: Record<string, Schema>): [name: string, schema: Schema][] {
  const found = new Set<string>()
  const visit = (part: string): void => {
    for (const name of Object.keys(schemas)) {
      if (found.has(name) || !new RegExp(`\\b${name}\\b`).test(part)) continue
      found.add(name)
      visit(typeOf(schemas[name] ?? {}))
    }
  }
  visit(`${text} Preview`)
  return Object.entries(schemas).filter(([name]) => found.has(name))
}

function typeOf(schema: Schema): string {
  const { $ref, type, anyOf, properties, required = [], items } = schema
  if ($ref) return $ref.slice($ref.lastIndexOf('/') + 1)
  if (anyOf) return [...new Set(anyOf.map(typeOf))].join(' | ')
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (type === 'array') return `(${typeOf(items ?? {})})[]`
  if (type === 'object') {
    if (!properties || Object.keys(properties).length === 0) return '{ [field: string]: unknown }'
    const fields = Object.entries(properties)
    return `{ ${fields.map(([name, field]) => `${name}${required.includes(name) ? '' : '?'}: ${typeOf(field)}`).join('; ')} }`
  }
  if (type === 'integer' || type === 'number') return 'number'
  return type === 'string' || type === 'boolean' || type === 'null' ? type : 'unknown'
}
