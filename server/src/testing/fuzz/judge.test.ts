import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ServedDocument } from './document.ts'
import type { Answer, Request } from './http.ts'
import { judge } from './judge.ts'

const thing = {
  type: 'object',
  required: ['id', 'made_at'],
  properties: { id: { type: 'integer' }, made_at: { type: 'string', format: 'date-time' } },
  additionalProperties: false,
}
const problem = (description: string) => ({
  description,
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Problem' } } },
})
const document = new ServedDocument(
  JSON.stringify({
    paths: {
      '/things/{id}': {
        get: {
          operationId: 'things.show',
          security: [{ accessToken: [] }],
          responses: {
            200: {
              description: 'Here.',
              headers: { ETag: {} },
              content: { 'application/json': { schema: thing } },
            },
            204: { description: 'Gone.' },
            401: problem('No: `unauthenticated`.'),
            404: problem('Not here: `not_found`.'),
            429: { ...problem('Wait: `rate_limited`.'), headers: { 'Retry-After': {} } },
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

const request: Request = { method: 'GET', path: '/things/1', headers: [] }
const always = {
  'content-type': 'application/json; charset=utf-8',
  'x-request-id': '01a1ddd6-c34e-7c50-9c0e-ed7d1dfa6391',
}
const good = { id: 1, made_at: '2026-11-15T06:13:21.876Z' }

function complaints(status: number, body: unknown, headers: Record<string, string | undefined> = {}): string {
  const given = Object.entries({ ...always, ...headers }).filter(([, value]) => value !== undefined)
  const answer: Answer = {
    status,
    headers: new Map(given as [string, string][]),
    text: body === undefined ? '' : JSON.stringify(body),
  }
  return judge(document.operation('things.show'), request, answer)
    .map(({ kind, text }) => `${kind}: ${text}`)
    .join('; ')
}

const refusal = (error: string, message = 'There is no such thing.') => ({ error, message })

describe('the judge of answers', () => {
  test('has nothing to say about what the document says', () => {
    assert.equal(complaints(200, good, { etag: '"7"' }), '')
    assert.equal(complaints(204, undefined, { 'content-type': undefined }), '')
    assert.equal(complaints(404, refusal('not_found')), '')
    assert.equal(complaints(401, refusal('unauthenticated'), { 'www-authenticate': 'Bearer' }), '')
    assert.equal(complaints(429, refusal('rate_limited'), { 'retry-after': '3' }), '')
    assert.equal(complaints(413, refusal('body_too_large')), '')
  })

  test('finds a status that is not documented, and any fault of the service', () => {
    assert.match(complaints(418, {}), /^undocumented status/)
    assert.match(complaints(500, refusal('internal_error')), /^5xx/)
    assert.match(complaints(503, refusal('unavailable')), /^5xx/)
  })

  test('finds a body that is not what the schema says', () => {
    const etag = { etag: '"7"' }
    for (const body of [
      { ...good, more: 1 },
      { id: 1 },
      { ...good, id: '1' },
      { ...good, made_at: '2026-11-15T06:13:21Z' },
      { ...good, made_at: '2026-11-15T07:13:21.876+01:00' },
      null,
      [],
    ]) {
      assert.match(complaints(200, body, etag), /^body off schema/, JSON.stringify(body))
    }
    assert.match(complaints(200, undefined, etag), /^body off schema: the body is not JSON/)
    assert.match(complaints(204, good, { 'content-type': undefined }), /^body off schema: .* empty/)
    assert.match(complaints(404, { ...refusal('not_found'), more: 1 }), /^body off schema/)
  })

  test('finds a code that the operation does not list for its status', () => {
    assert.match(complaints(404, refusal('in_use')), /^body off schema: "in_use" is not a code/)
  })

  test('finds headers that are missing, wrong or too many', () => {
    assert.match(complaints(200, good), /manners: etag is missing/)
    assert.match(complaints(200, good, { etag: '7' }), /manners: etag is 7/)
    assert.match(complaints(404, refusal('not_found'), { etag: '"7"' }), /etag should not be there/)
    assert.match(complaints(404, refusal('not_found'), { 'x-request-id': 'mine' }), /X-Request-Id/)
    assert.match(complaints(401, refusal('unauthenticated')), /WWW-Authenticate/)
    assert.match(complaints(429, refusal('rate_limited')), /retry-after is missing/)
    assert.match(complaints(404, refusal('not_found'), { 'content-type': 'text/html' }), /Content-Type/)
  })

  test('finds a message that tells how the service is made', () => {
    for (const message of [
      'relation "control.projects" does not exist',
      'insert into control.audit (id) values ($1)',
      'duplicate key value violates unique constraint "members_one_owner"',
      'TypeError: x is undefined',
      'at run (/srv/postern/server/src/admin/pipeline.ts:41:3)',
      'connect ECONNREFUSED 127.0.0.1:5432',
      'FST_ERR_VALIDATION',
    ]) {
      assert.match(complaints(404, refusal('not_found', message)), /the message tells of/, message)
    }
  })
})
