import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { root } from '../pages.ts'

/** The parts of the OpenAPI document that the reference shows. */
export interface Document {
  info: { description: string }
  tags: { name: string; 'x-displayName': string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, { post: Operation }>
  components: { schemas: Record<string, Schema> }
}

export interface Operation {
  operationId: string
  tags: string[]
  summary: string
  description: string
  security: Record<string, string[]>[]
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Record<string, Media> }
  responses: Record<string, Response>
  'x-roles'?: string[]
  'x-scopes'?: string[]
  'x-rights'?: string[]
  'x-rights-fields'?: Record<string, string[]>
  'x-dry-run-response'?: Response
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description?: string
  example?: unknown
  schema: Schema
}

export interface Media {
  schema: Schema
  example?: unknown
}

export interface Response {
  description: string
  headers?: Record<string, { description?: string; schema: Schema }>
  content?: Record<string, Media>
}

export interface Schema {
  $ref?: string
  title?: string
  description?: string
  type?: string
  format?: string
  pattern?: string
  const?: unknown
  enum?: unknown[]
  default?: unknown
  examples?: unknown[]
  anyOf?: Schema[]
  items?: Schema
  required?: string[]
  properties?: Record<string, Schema>
  additionalProperties?: boolean | Schema
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
}

const openapiFile = path.join(root, 'openapi/postern.v1.json')

export const readDocument = async (): Promise<Document> => JSON.parse(await readFile(openapiFile, 'utf8'))

/** The schema that a reference names, and its name. */
export function resolve(
  { components }: Document,
  schema: Schema,
): { schema: Schema; name: string | undefined } {
  const name = schema.$ref?.split('/').at(-1)
  if (name === undefined) return { schema, name: undefined }
  const found = components.schemas[name]
  if (!found) throw new Error(`The schema ${name} does not exist.`)
  // A description beside the reference is about this use of the schema.
  return {
    schema: schema.description === undefined ? found : { ...found, description: schema.description },
    name,
  }
}

/** The schema without the alternative null, and whether it had one. */
export function withoutNull(schema: Schema): { schema: Schema; isNullable: boolean } {
  const others = schema.anyOf?.filter(({ type }) => type !== 'null')
  const [only] = others ?? []
  if (!only || others?.length === schema.anyOf?.length) return { schema, isNullable: false }
  if (others?.length !== 1) return { schema: { ...schema, anyOf: others ?? [] }, isNullable: true }
  const { anyOf: _, ...rest } = schema
  return { schema: { ...only, ...rest }, isNullable: true }
}
