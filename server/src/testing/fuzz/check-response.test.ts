import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { checkResponse } from './check-response.ts'
import { ServedDocument } from './document.ts'
import type { HttpResponse, Request } from './http.ts'

const resource = {
  type: 'object',
  required: ['id', 'created_at'],
  properties: { id: { type: 'integer' }, created_at: { type: 'string', format: 'date-time' } },
  additionalProperties: false,
}
const problem = (description: string) => ({
  description,
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Problem' } } },
})
const document = new ServedDocument(
  JSON.stringify({
    paths: {
      '/resources/{id}': {
        get: {
          operationId: 'resources.show',
          security: [{ accessToken: [] }],
          responses: {
            200: {
              description: 'Success.',
              headers: { ETag: {} },
              content: { 'application/json': { schema: resource } },
            },
            204: { description: 'No content.' },
            401: problem('Error: `unauthenticated`.'),
            404: problem('Error: `not_found`.'),
            429: { ...problem('Error: `rate_limited`.'), headers: { 'Retry-After': {} } },
          },
        },
      },
    },
    components: {
      schemas: {
        Problem: {
          type: 'object',
          required: ['error', 'message'],
          properties: { error: { type: 'string' }, message: { type: 'string' } },
          additionalProperties: false,
        },
      },
    },
  }),
)

const request: Request = { method: 'GET', path: '/resources/1', headers: [] }
const always = {
  'content-type': 'application/json; charset=utf-8',
  'x-request-id': '01a1ddd6-c34e-7c50-9c0e-ed7d1dfa6391',
}
const good = { id: 1, created_at: '2026-11-15T06:13:21.876Z' }

function violations(status: number, body: unknown, headers: Record<string, string | undefined> = {}): string {
  const given = Object.entries({ ...always, ...headers }).filter(([, value]) => value !== undefined)
  const response: HttpResponse = {
    status,
    headers: new Map(given as [string, string][]),
    text: body === undefined ? '' : JSON.stringify(body),
  }
  return checkResponse(document.operation('resources.show'), request, response)
    .map(({ kind, text }) => `${kind}: ${text}`)
    .join('; ')
}

const refusal = (error: string, message = 'Not found.') => ({ error, message })

describe('checkResponse', () => {
  test('accepts documented responses', () => {
    assert.equal(violations(200, good, { etag: '"7"' }), '')
    assert.equal(violations(204, undefined, { 'content-type': undefined }), '')
    assert.equal(violations(404, refusal('not_found')), '')
    assert.equal(violations(401, refusal('unauthenticated'), { 'www-authenticate': 'Bearer' }), '')
    assert.equal(violations(429, refusal('rate_limited'), { 'retry-after': '3' }), '')
    assert.equal(violations(413, refusal('body_too_large')), '')
  })

  test('reports an undocumented status and every 5xx', () => {
    assert.match(violations(418, {}), /^undocumented status/)
    assert.match(violations(500, refusal('internal_error')), /^5xx/)
    assert.match(violations(503, refusal('unavailable')), /^5xx/)
  })

  test('reports a body that does not match its schema', () => {
    const etag = { etag: '"7"' }
    for (const body of [
      { ...good, extra: 1 },
      { id: 1 },
      { ...good, id: '1' },
      { ...good, created_at: '2026-11-15T06:13:21Z' },
      { ...good, created_at: '2026-11-15T07:13:21.876+01:00' },
      null,
      [],
    ]) {
      assert.match(violations(200, body, etag), /^schema mismatch/, JSON.stringify(body))
    }
    assert.match(violations(200, undefined, etag), /^schema mismatch: the body is not JSON/)
    assert.match(violations(204, good, { 'content-type': undefined }), /^schema mismatch: .* empty/)
    assert.match(violations(404, { ...refusal('not_found'), extra: 1 }), /^schema mismatch/)
  })

  test('reports an error code that the operation does not document for the status', () => {
    assert.match(violations(404, refusal('in_use')), /^schema mismatch: "in_use" is not documented/)
  })

  test('reports missing, invalid and unexpected headers', () => {
    assert.match(violations(200, good), /HTTP behaviour: etag is missing/)
    assert.match(violations(200, good, { etag: '7' }), /HTTP behaviour: invalid etag: 7/)
    assert.match(violations(404, refusal('not_found'), { etag: '"7"' }), /unexpected etag/)
    assert.match(violations(404, refusal('not_found'), { 'x-request-id': 'mine' }), /X-Request-Id/)
    assert.match(violations(401, refusal('unauthenticated')), /WWW-Authenticate/)
    assert.match(violations(429, refusal('rate_limited')), /retry-after is missing/)
    assert.match(violations(404, refusal('not_found'), { 'content-type': 'text/html' }), /Content-Type/)
  })

  test('reports a message that reveals internals', () => {
    for (const message of [
      'relation "control.projects" does not exist',
      'insert into control.audit (id) values ($1)',
      'duplicate key value violates unique constraint "members_one_owner"',
      'TypeError: x is undefined',
      'at run (/srv/postern/server/src/admin/pipeline.ts:41:3)',
      'connect ECONNREFUSED 127.0.0.1:5432',
      'FST_ERR_VALIDATION',
    ]) {
      assert.match(violations(404, refusal('not_found', message)), /the message reveals/, message)
    }
  })
})
