/**
 * The part of an OpenAPI document that clients depend on: operations, parameters, schemas, permissions and events,
 * without texts and examples. This is what is kept of each release.
 */
export interface ApiContract {
  paths: Record<string, Record<string, ContractOperation>>
  webhooks: Record<string, Record<string, ContractOperation>>
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, unknown> }
}

export interface ContractOperation {
  operationId: string
  security?: unknown[]
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Content }
  responses: Record<string, { headers?: Content; content?: Content }>
  'x-scopes'?: string[]
  'x-roles'?: string[]
  'x-rights'?: string[]
  'x-rights-fields'?: Record<string, string[]>
  'x-dry-run-response'?: { content: Content }
}

export interface Parameter {
  name: string
  in: string
  required?: boolean
  schema: Schema
}

export type Content = Record<string, { schema: Schema }>
export type Schema = { [keyword: string]: unknown }

const texts = new Set(['description', 'summary', 'title', 'example', 'examples', 'tags', 'x-displayName'])
/** The members of these objects have names that are not keywords, such as a field named `title`. */
const maps = new Set([
  ...['paths', 'webhooks', 'schemas', 'securitySchemes', 'responses', 'headers', 'content'],
  ...['properties', 'patternProperties'],
])
/** Values of a client's own, such as an enumeration. */
const data = new Set(['enum', 'const', 'default'])

export function apiContract(document: object): ApiContract {
  const { paths, webhooks, components } = withoutTexts(document, false) as unknown as ApiContract
  return { paths, webhooks, components }
}

function withoutTexts(value: unknown, isMap: boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutTexts(item, false))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => isMap || !texts.has(key))
      .map(([key, inner]) =>
        !isMap && data.has(key)
          ? [key, inner]
          : [key, withoutTexts(inner, !isMap && maps.has(key) && isObject(inner))],
      ),
  )
}

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** One line for each operation and each schema, so that a difference can be read. */
export function contractText({ paths, webhooks, components }: ApiContract): string {
  const lines = (record: object): string =>
    Object.entries(record)
      .map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)
      .join(',\n')
  const operations = (record: ApiContract['paths']): string =>
    Object.entries(record)
      .map(([path, methods]) => `${JSON.stringify(path)}:{\n${lines(methods)}}`)
      .join(',\n')
  return `{"paths":{
${operations(paths)}},
"webhooks":{
${operations(webhooks)}},
"components":{"securitySchemes":{
${lines(components.securitySchemes)}},
"schemas":{
${lines(components.schemas)}}}}
`
}
