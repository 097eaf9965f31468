import Schemas from 'typebox/schema'

/**
 * The OpenAPI document as the service serves it, ready to make requests from and to hold answers against. Nothing
 * here knows the service's own code: what is not in the document does not exist.
 */
export type Schema = { readonly [keyword: string]: unknown }

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  schema: Schema
}

export interface DocumentedAnswer {
  /** Null where the body is empty. */
  contentType: string | null
  /** Header names in lower case. */
  headers: ReadonlySet<string>
  /** The codes that its description lists; empty for a success. */
  codes: ReadonlySet<string>
  /** What is wrong with the body, in words. */
  faultsOf(body: unknown): string[]
}

export interface DocumentedOperation {
  id: string
  method: string
  /** With `{name}` for its parameters. */
  path: string
  caller: 'token' | 'session' | 'nobody'
  parameters: readonly Parameter[]
  body: Schema | undefined
  answers: ReadonlyMap<number, DocumentedAnswer>
  /** Of `dry_run=true`, where there is such a thing. */
  preview: DocumentedAnswer | undefined
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
  responses: Record<string, RawAnswer>
  'x-dry-run-response'?: RawAnswer
}

interface RawAnswer {
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
    caller: schemes.includes('accessToken') ? 'token' : schemes.includes('session') ? 'session' : 'nobody',
    parameters: parameters.map(({ required = false, schema, ...rest }) => ({
      ...rest,
      required,
      schema: inlined(document, schema),
    })),
    body: body && inlined(document, body),
    answers: new Map(
      Object.entries(responses).map(([status, answer]) => [Number(status), readAnswer(document, answer)]),
    ),
    preview: preview && readAnswer(document, preview),
  }
}

function readAnswer(
  document: RawDocument,
  { description, headers = {}, content = {} }: RawAnswer,
): DocumentedAnswer {
  const [contentType = null, media] = Object.entries(content)[0] ?? []
  return {
    contentType,
    headers: new Set(Object.keys(headers).map((name) => name.toLowerCase())),
    codes: new Set([...description.matchAll(/`([a-z_]+)`/g)].map(([, code = '']) => code)),
    faultsOf: media ? checkerOf(inlined(document, media.schema)) : () => [],
  }
}

/** Schemas that look alike are compiled once. */
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

/** The document says UTC with milliseconds, in words; a format alone would let any offset pass. */
const instant = '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$'

/** Every reference replaced by what it refers to. No schema of the document refers to itself. */
function inlined<T>(document: RawDocument, schema: T): T {
  if (Array.isArray(schema)) return schema.map((one) => inlined(document, one)) as T
  if (typeof schema !== 'object' || schema === null) return schema
  if ('$ref' in schema) {
    const name = String(schema.$ref).split('/').at(-1) ?? ''
    const found = document.components.schemas[name]
    if (!found) throw new Error(`the document refers to ${schema.$ref}, which it does not have`)
    return inlined(document, found) as T
  }
  const members = Object.entries(schema).map(([key, value]) => [key, inlined(document, value)])
  return {
    ...Object.fromEntries(members),
    ...(Reflect.get(schema, 'format') === 'date-time' ? { pattern: instant } : {}),
  } as T
}

/** What any operation may answer, told once at the head of the document. */
const isProblem = checkerOf({
  type: 'object',
  required: ['error', 'message'],
  properties: { error: { type: 'string' }, message: { type: 'string', minLength: 1 } },
  additionalProperties: false,
})

const problem = (...codes: string[]): DocumentedAnswer => ({
  contentType: 'application/json',
  headers: new Set(),
  codes: new Set(codes),
  faultsOf: isProblem,
})

export const transportAnswers: ReadonlyMap<number, DocumentedAnswer> = new Map([
  [413, problem('body_too_large')],
  [415, problem('unsupported_media_type')],
  [503, problem('unavailable')],
])

/** Where there is no operation, and for what is not HTTP. */
export const answersOutsideOperations: ReadonlyMap<number, DocumentedAnswer> = new Map([
  [400, problem('invalid_parameter', 'invalid_json')],
  [401, problem('unauthenticated', 'token_expired')],
  [403, problem('api_key_not_allowed', 'admin_required')],
  [404, problem('not_found')],
  [405, problem('method_not_allowed')],
])
