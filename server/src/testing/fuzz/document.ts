import Schemas from 'typebox/schema'

/**
 * The OpenAPI document as served. Requests are generated from it, and responses are checked against it. Nothing
 * here imports the service's code.
 */
export type Schema = { readonly [keyword: string]: unknown }

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  schema: Schema
}

export interface DocumentedResponse {
  /** Null for an empty body. */
  contentType: string | null
  /** Header names in lower case. */
  headers: ReadonlySet<string>
  /** Error codes listed in the description; empty for a success. */
  codes: ReadonlySet<string>
  /** Validation errors of a body. */
  faultsOf(body: unknown): string[]
}

export interface DocumentedOperation {
  id: string
  method: string
  /** Contains `{name}` for each parameter. */
  path: string
  caller: 'token' | 'session' | 'anonymous'
  parameters: readonly Parameter[]
  body: Schema | undefined
  responses: ReadonlyMap<number, DocumentedResponse>
  /** The response to `dry_run=true`, if the operation supports it. */
  preview: DocumentedResponse | undefined
}

export class ServedDocument {
  readonly operations: readonly DocumentedOperation[]
  readonly #byId: ReadonlyMap<string, DocumentedOperation>

  constructor(text: string) {
    const document = JSON.parse(text) as RawDocument
    this.operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => readOperation(document, path, method, operation)),
    )
    this.#byId = new Map(this.operations.map((operation) => [operation.id, operation]))
  }

  has(id: string): boolean {
    return this.#byId.has(id)
  }

  operation(id: string): DocumentedOperation {
    const found = this.#byId.get(id)
    if (!found) throw new Error(`the document has no operation ${id}`)
    return found
  }
}

interface RawDocument {
  paths: Record<string, Record<string, RawOperation>>
  components: { schemas: Record<string, Schema> }
}

interface RawOperation {
  operationId: string
  security?: Record<string, unknown>[]
  parameters?: { name: string; in: Parameter['in']; required?: boolean; schema: Schema }[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  responses: Record<string, RawResponse>
  'x-dry-run-response'?: RawResponse
}

interface RawResponse {
  description: string
  headers?: Record<string, unknown>
  content?: Record<string, { schema: Schema }>
}

function readOperation(
  document: RawDocument,
  path: string,
  method: string,
  { operationId, security = [], parameters = [], requestBody, responses, ...extensions }: RawOperation,
): DocumentedOperation {
  const body = requestBody?.content['application/json']?.schema
  const preview = extensions['x-dry-run-response']
  const schemes = security.flatMap((one) => Object.keys(one))
  return {
    id: operationId,
    method: method.toUpperCase(),
    path,
    caller: schemes.includes('accessToken') ? 'token' : schemes.includes('session') ? 'session' : 'anonymous',
    parameters: parameters.map(({ required = false, schema, ...rest }) => ({
      ...rest,
      required,
      schema: inlined(document, schema),
    })),
    body: body && inlined(document, body),
    responses: new Map(
      Object.entries(responses).map(([status, response]) => [
        Number(status),
        readResponse(document, response),
      ]),
    ),
    preview: preview && readResponse(document, preview),
  }
}

function readResponse(
  document: RawDocument,
  { description, headers = {}, content = {} }: RawResponse,
): DocumentedResponse {
  const [contentType = null, media] = Object.entries(content)[0] ?? []
  return {
    contentType,
    headers: new Set(Object.keys(headers).map((name) => name.toLowerCase())),
    codes: new Set([...description.matchAll(/`([a-z_]+)`/g)].map(([, code = '']) => code)),
    faultsOf: media ? checkerOf(inlined(document, media.schema)) : () => [],
  }
}

/** Validators by schema: equal schemas are compiled once. */
const compiled = new Map<string, (body: unknown) => string[]>()

function checkerOf(schema: Schema): (body: unknown) => string[] {
  const key = JSON.stringify(schema)
  const known = compiled.get(key)
  if (known) return known
  const validator = Schemas.Compile(schema as never)
  const checker = (body: unknown): string[] => {
    if (validator.Check(body)) return []
    const [, errors] = validator.Errors(body)
    return errors.map(({ instancePath, message }) => `${instancePath || 'the body'} ${message}`)
  }
  compiled.set(key, checker)
  return checker
}

/** The document's prose requires UTC with milliseconds. The format `date-time` would accept any offset. */
const instant = '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$'

/** Replaces every `$ref` with the schema it refers to. The document has no recursive schemas. */
function inlined<T>(document: RawDocument, schema: T): T {
  if (Array.isArray(schema)) return schema.map((one) => inlined(document, one)) as T
  if (typeof schema !== 'object' || schema === null) return schema
  if ('$ref' in schema) {
    const name = String(schema.$ref).split('/').at(-1) ?? ''
    const found = document.components.schemas[name]
    if (!found) throw new Error(`the document refers to ${schema.$ref}, which does not exist`)
    return inlined(document, found) as T
  }
  const members = Object.entries(schema).map(([key, value]) => [key, inlined(document, value)])
  return {
    ...Object.fromEntries(members),
    ...(Reflect.get(schema, 'format') === 'date-time' ? { pattern: instant } : {}),
  } as T
}

/** Responses that every operation can return, described at the top of the document. */
const isProblem = checkerOf({
  type: 'object',
  required: ['error', 'message'],
  properties: { error: { type: 'string' }, message: { type: 'string', minLength: 1 } },
  additionalProperties: false,
})

const problem = (...codes: string[]): DocumentedResponse => ({
  contentType: 'application/json',
  headers: new Set(),
  codes: new Set(codes),
  faultsOf: isProblem,
})

export const transportResponses: ReadonlyMap<number, DocumentedResponse> = new Map([
  [413, problem('body_too_large')],
  [415, problem('unsupported_media_type')],
  [503, problem('unavailable')],
])

/** Responses to paths without an operation and to invalid HTTP. */
export const responsesOutsideOperations: ReadonlyMap<number, DocumentedResponse> = new Map([
  [400, problem('invalid_parameter', 'invalid_json')],
  [401, problem('unauthenticated', 'token_expired')],
  [403, problem('api_key_not_allowed', 'admin_required')],
  [404, problem('not_found')],
  [405, problem('method_not_allowed')],
])
