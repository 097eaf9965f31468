import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import Type from 'typebox'
import { errorCodes } from '../platform/errors.ts'
import { statusOf } from '../platform/http/problem.ts'
import { createHttpServer, type HttpServer } from '../platform/http/server.ts'
import { createLogger } from '../platform/telemetry/log.ts'
import { customers } from '../testing/fixtures/customers.ts'
import { mailRows } from '../testing/fixtures/mail-rows.ts'
import { startApi } from '../testing/harness/api.ts'
import type { Client } from '../testing/harness/client.ts'
import { testDatabase } from '../testing/harness/database.ts'
import type { Schema } from './named-schemas.ts'
import { type OpenapiDocument, openapiDocument, registerOpenapi } from './openapi.ts'

const committed = await readFile(new URL('../../../openapi/postern.v1.json', import.meta.url), 'utf8')
const database = await testDatabase()
const api = await startApi(database, { POSTERN_PUBLIC_URL: 'https://mail.example.com' })
const { admin, make, ownProject, keyOf } = await customers(api, database)
const { makeMail } = mailRows(database)

/** The document for routes that the test defines. */
async function documentOf(makeRoutes: (app: HttpServer) => void) {
  const app = createHttpServer({ log: createLogger('error'), trustedProxies: [], isHttps: false })
  registerOpenapi(app, async () => ({ limit: 1, remaining: 0, resetSeconds: 1 }))
  makeRoutes(app)
  await app.ready()
  try {
    return openapiDocument(app)
  } finally {
    await app.close()
  }
}

const answering = (schema: object) => ({
  schema: { response: { 200: { description: 'Yes.', content: { 'application/json': { schema } } } } },
})

describe('the OpenAPI document', () => {
  test('matches the committed file, regardless of the configuration', async () => {
    const response = await fetch(`${api.url}/openapi.json`)
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
    assert.equal(await response.text(), committed)
  })

  test('lists every error code next to its status', () => {
    const { info } = JSON.parse(committed)
    for (const code of errorCodes) {
      const row = new RegExp(`^\\| ${statusOf[code]} \\|.*\`${code}\``, 'm')
      assert.match(info.description, row)
    }
  })

  test('contains only operations: no fallback routes, no HEAD, no pages', () => {
    const { paths } = JSON.parse(committed)
    const methods = Object.values(paths as object).flatMap((path) => Object.keys(path))
    assert.deepEqual(
      [...new Set(methods)].filter((method) => !['get', 'post', 'put', 'patch', 'delete'].includes(method)),
      [],
    )
    for (const path of Object.keys(paths)) assert.match(path, /^\/(v1\/[^*]+|healthz|readyz)$/)
  })

  test('shows the documented body of an operation instead of the validated one', async () => {
    const Checked = Type.Object({ reason: Type.Optional(Type.String()) })
    const Documented = Type.Object({ reason: Type.String() })
    const { paths } = await documentOf((app) => {
      app.post('/x', { schema: { body: Checked }, config: { documentedBody: Documented } }, () => null)
    })
    const { schema } = paths['/x']?.['post']?.requestBody?.content?.['application/json'] ?? {}
    assert.deepEqual(schema?.['required'], ['reason'])
  })

  test('keeps null, constants and multiple examples from the schemas', async () => {
    const schema = Type.Object({
      note: Type.Union([Type.String(), Type.Null()], { examples: ['Yes', null] }),
      kind: Type.Literal('note'),
    })
    const { paths } = await documentOf((app) => app.get('/x', answering(schema), () => null))
    assert.deepEqual(paths['/x']?.['get']?.responses['200']?.content?.['application/json']?.schema, {
      type: 'object',
      required: ['note', 'kind'],
      properties: {
        note: { anyOf: [{ type: 'string' }, { type: 'null' }], examples: ['Yes', null] },
        kind: { type: 'string', const: 'note' },
      },
    })
  })

  test('describes a schema with a title once, and references it everywhere', async () => {
    const Plan = Type.Object({ title: Type.String() }, { title: 'Plan', examples: [{ title: 'Small' }] })
    const Project = Type.Object(
      { plan: Plan, next: Type.Union([Plan, Type.Null()]) },
      { title: 'Project', description: 'A project.' },
    )
    const { paths, components } = await documentOf((app) => {
      app.get('/projects', answering(Type.Object({ data: Type.Array(Project) })), () => null)
      app.post('/plans', { schema: { body: Plan } }, () => null)
    })
    const plan = { $ref: '#/components/schemas/Plan' }
    // The events of the webhooks are always in the document.
    const made = components['schemas'] as Record<string, object>
    const ours = Object.entries(made).filter(([name]) => !name.endsWith('Event'))
    assert.deepEqual(Object.fromEntries(ours), {
      Plan: {
        type: 'object',
        required: ['title'],
        properties: { title: { type: 'string' } },
        title: 'Plan',
        examples: [{ title: 'Small' }],
      },
      Project: {
        type: 'object',
        required: ['plan', 'next'],
        properties: { plan, next: { anyOf: [plan, { type: 'null' }] } },
        title: 'Project',
        description: 'A project.',
      },
    })
    assert.deepEqual(paths['/plans']?.['post']?.requestBody?.content?.['application/json'], {
      schema: plan,
      example: { title: 'Small' },
    })
    assert.deepEqual(paths['/projects']?.['get']?.responses['200']?.content?.['application/json']?.schema, {
      type: 'object',
      required: ['data'],
      properties: { data: { type: 'array', items: { $ref: '#/components/schemas/Project' } } },
    })
  })

  test('is not generated if two schemas have the same title', async () => {
    await assert.rejects(
      documentOf((app) => {
        app.get('/one', answering(Type.Object({ a: Type.String() }, { title: 'Thing' })), () => null)
        app.get('/other', answering(Type.Object({ b: Type.String() }, { title: 'Thing' })), () => null)
      }),
      /Two different schemas have the title "Thing"/,
    )
  })
})

interface BodiedOperation {
  id: string
  method: string
  path: string
  needsBody: boolean
  /** Fields other than the reason. */
  hasFields: boolean
  /** Statuses of a success. */
  successes: number[]
}

const fieldsOf = (content: Record<string, { schema: Schema | undefined }> | undefined): object =>
  content?.['application/json']?.schema?.['properties'] ?? {}

/** The operations of the committed document that have a body, except sign-in, which needs a cookie. */
const bodiedOperations = Object.entries((JSON.parse(committed) as OpenapiDocument).paths).flatMap(
  ([path, methods]) =>
    Object.entries(methods).flatMap(
      ([method, { operationId = '', requestBody, responses }]): BodiedOperation[] =>
        requestBody && !path.startsWith('/v1/auth/')
          ? [
              {
                id: operationId,
                method: method.toUpperCase(),
                path: path.slice('/v1'.length),
                needsBody: requestBody.required ?? false,
                hasFields: Object.keys(fieldsOf(requestBody.content)).some((name) => name !== 'reason'),
                successes: Object.keys(responses)
                  .map(Number)
                  .filter((status) => status < 300),
              },
            ]
          : [],
    ),
)

const isOfKey = (path: string): boolean => /^\/(?:messages|suppressions)\b/.test(path)

/** A new resource in a new project, and a caller who can change it. */
async function target({ path }: BodiedOperation): Promise<{ client: Client; path: string }> {
  const { owner, project } = await ownProject()
  const suppressed = 'gone@example.net'
  const makeOne: Record<string, () => Promise<{ id: number | string }>> = {
    members: () => make.makeMember(project.id),
    domains: () => make.makeDomain(project.id, { mta_provider: 'service' }),
    endpoints: async () => (await make.makeEndpoint(project.id)).resource,
    routing: () => make.makeRoute(project.id),
    'api-keys': async () => (await make.makeApiKey(project.id)).resource,
    messages: async () => ({ id: (await makeMail(project.id, { sendIn: '1 day' })).messageId }),
  }
  const [, noun] = /([^/]+)\/\{id\}/.exec(path) ?? []
  const id = noun === undefined ? '' : (await (makeOne[noun] ?? assert.fail(noun))()).id
  if (path.includes('{address}')) {
    const { status } = await owner.post(`/projects/${project.id}/suppressions`, { address: suppressed })
    assert.equal(status, 201)
  }
  const filled = path
    .replace('{project_id}', String(project.id))
    .replace('{id}', String(id))
    .replace('{address}', suppressed)
  if (path.startsWith('/admin/')) return { client: admin, path: filled.slice('/admin'.length) }
  if (!isOfKey(path)) return { client: owner, path: filled }
  return { client: await keyOf(project.id, ['messages:send', 'suppressions:write']), path: filled }
}

describe('a body that the document marks as optional', () => {
  for (const operation of bodiedOperations.filter(({ needsBody }) => !needsBody)) {
    test(`can be absent, empty or an empty object: ${operation.id}`, async () => {
      const requests: Record<string, [body: unknown, headers: Record<string, string>]> = {
        absent: [undefined, {}],
        empty: [undefined, { 'content-type': 'application/json' }],
        'an empty object': [{}, {}],
      }
      for (const [what, [body, headers]] of Object.entries(requests)) {
        const { client, path } = await target(operation)
        const { status, text } = await client.request(operation.method, path, body, headers)
        assert.ok(operation.successes.includes(status), `${what}: ${status} ${text}`)
      }
    })
  }
})

test('a request without the body that the document marks as required is rejected', async () => {
  const { owner, project } = await ownProject()
  const key = await keyOf(project.id, ['messages:send', 'suppressions:write'])
  // The administrators' operations whose only required field is the reason: specification-reasons.test.ts.
  const required = bodiedOperations.filter(({ needsBody, hasFields }) => needsBody && hasFields)
  assert.ok(required.length > 50, String(required.length))
  for (const { id, method, path } of required) {
    const client = path.startsWith('/admin/') ? admin : isOfKey(path) ? key : owner
    const filled = path
      .replace(/^\/admin/, '')
      .replace('{project_id}', String(project.id))
      .replace(/\{\w+\}/, '1')
    const { status, text } = await client.request(method, filled)
    assert.ok(status >= 400 && status < 500, `${id}: ${status} ${text}`)
  }
})
