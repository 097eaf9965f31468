import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import Type from 'typebox'
import { errorCodes } from '../platform/errors.ts'
import { statusOf } from '../platform/http/problem.ts'
import { createHttpServer, type HttpServer } from '../platform/http/server.ts'
import { createLogger } from '../platform/telemetry/log.ts'
import { startApi } from '../testing/harness/api.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { openapiDocument, registerOpenapi } from './openapi.ts'

const committed = await readFile(new URL('../../../openapi/postern.v1.json', import.meta.url), 'utf8')
const api = await startApi(await testDatabase(), { POSTERN_PUBLIC_URL: 'https://mail.example.com' })

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
