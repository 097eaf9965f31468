/**
 * Generates the console's API client from the OpenAPI document: the types of every operation that the console calls,
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
}

export interface OpenapiDocument {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

const seen = /^\/v1\/(admin|auth)\//
const isPreview = ({ $ref }: Schema): boolean => $ref === '#/components/schemas/Preview'

export function consoleClient(document: OpenapiDocument): string {
  const operations = Object.entries(document.paths)
    .filter(([path]) => seen.test(path))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        path,
        method: method.toUpperCase(),
        operation,
      })),
    )
  const types = operations.map(({ operation }) => operationType(operation)).join('\n')
  const named = schemasIn(types, document.components.schemas)
  return `// Generated from openapi/postern.v1.json by \`npm run generate\`.

${named.map(([name, schema]) => `export interface ${name} ${typeOf(schema)}`).join('\n\n')}

export interface Operations {
${types}
}

/** \`read\`: a POST that changes nothing. */
export const operations: Record<keyof Operations, readonly [method: string, path: string, kind?: 'read']> = {
${operations.map(operationEntry).join('\n')}
}

/** The rights, other than full, that allow each administrative mutation: all of it, or some fields. */
export const limitedRights = {
${operations
  .filter(({ operation }) => hasPreview(operation))
  .map(({ operation }) => `  '${operation.operationId}': ${limitedRightsOf(operation)},`)
  .join('\n')}
} as const
`
}

/** Every administrative mutation has a preview. */
function operationEntry({ operation, method, path }: { operation: Operation; method: string; path: string }) {
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
