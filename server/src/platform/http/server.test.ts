import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import Type from 'typebox'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { eventually } from '../../testing/harness/waiting.ts'
import { errorCodes, PosternError } from '../errors.ts'
import { createLogger } from '../telemetry/log.ts'
import { statusOf } from './problem.ts'
import { createHttpServer } from './server.ts'

const logLines: string[] = []
const log = createLogger('info', { write: (line) => void logLines.push(line) })
const app = createHttpServer({ log, trustedProxies: ['127.0.0.0/8'], isHttps: true })

const Thing = Type.Object({ count: Type.Integer() }, { additionalProperties: false })
app.post('/things', { schema: { body: Thing } }, async ({ body }) => body)
app.get(
  '/things/:id',
  { schema: { params: Type.Object({ id: Type.String({ pattern: '^[0-9]+$' }) }) } },
  async () => ({}),
)
app.get('/address', async ({ ip }) => ({ ip }))
app.get('/bug', async () => {
  throw new Error('secret internals: password=canary')
})
app.get('/internal', async () => {
  throw new PosternError('internal_error', 'internal words: canary')
})
app.get('/busy', async () => {
  throw new PosternError('unavailable', 'Try later.', { retryAfterSeconds: 7 })
})
const url = await app.listen({ port: 0, host: '127.0.0.1' })
cleanUp(() => app.close())

const post = (body: string, type = 'application/json') =>
  fetch(`${url}/things`, { method: 'POST', body, headers: { 'content-type': type } })

async function assertProblem(response: Response, status: number, error: string): Promise<string> {
  assert.equal(response.status, status)
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/)
  const body = (await response.json()) as { error: string; message: string }
  assert.deepEqual(Object.keys(body), ['error', 'message'], 'exactly two fields, in this order')
  assert.equal(body.error, error)
  assert.ok(body.message.length > 0)
  return body.message
}

describe('a request', () => {
  test('with a wrong type, an unknown field or a missing field gets an error that names the field', async () => {
    assert.equal((await post('{"count":1}')).status, 200)
    for (const wrong of [
      '{"count":"1"}',
      '{"count":null}',
      '{"count":1.5}',
      '{"count":true}',
      '{"count":[1]}',
    ]) {
      assert.match(
        await assertProblem(await post(wrong), 422, 'validation_failed'),
        /"count" must be an integer/,
      )
    }
    assert.match(
      await assertProblem(await post('{"count":1,"colour":2}'), 422, 'validation_failed'),
      /"colour" is not a field/,
    )
    assert.match(await assertProblem(await post('{}'), 422, 'validation_failed'), /count/)
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`field${n}`, n]))
    const answer = await assertProblem(await post(JSON.stringify(many)), 422, 'validation_failed')
    assert.ok(answer.length < 2_000, 'the response stays small, whatever was sent')
  })

  test('with a body that is not JSON, not declared as JSON, empty or too large is rejected', async () => {
    await assertProblem(await post('{count:1}'), 400, 'invalid_json')
    await assertProblem(await post(''), 400, 'invalid_json')
    for (const member of ['"__proto__":{"x":1}', '"\\u005f_proto__":{}', '"constructor":{"prototype":{}}']) {
      await assertProblem(await post(`{${member},"count":1}`), 400, 'invalid_json')
    }
    await assertProblem(
      await post('count=1', 'application/x-www-form-urlencoded'),
      415,
      'unsupported_media_type',
    )
    await assertProblem(await post('{"count":1}', 'text/plain'), 415, 'unsupported_media_type')
    await assertProblem(await post(`{"count":${'1'.repeat(1024 * 1024)}}`), 413, 'body_too_large')
  })

  test('that is rejected while the client is sending gets the response', async () => {
    const rest = 'y'.repeat(16 * 1024 * 1024)
    const head = `POST /things HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${rest.length}`
    for (let no = 0; no < 5; no++) {
      assert.match(
        await raw(`${head}\r\n\r\n${rest}`),
        /^HTTP\/1\.1 413 .*\r\n\r\n\{"error":"body_too_large"/s,
      )
      assert.match(
        await raw(`GET / HTTP/1.1\r\nhost: x\r\nx: ${rest}\r\n\r\n`),
        /^HTTP\/1\.1 400 .*\r\n\r\n\{"error":"invalid_parameter"/s,
      )
    }
  })

  test('with an invalid path parameter gets invalid_parameter', async () => {
    await assertProblem(await fetch(`${url}/things/1e3`), 400, 'invalid_parameter')
    await assertProblem(await fetch(`${url}/things/${'1'.repeat(300)}x`), 400, 'invalid_parameter')
    const malformed = await fetch(`${url}/things/%zz`)
    assert.match(malformed.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/)
    await assertProblem(malformed, 400, 'invalid_parameter')
  })

  test('for an unknown path gets a problem', async () => {
    await assertProblem(await fetch(`${url}/nowhere`), 404, 'not_found')
  })

  test('that is not HTTP gets a problem', async () => {
    const answer = await raw('NOT HTTP AT ALL\r\n\r\n')
    assert.match(answer, /^HTTP\/1\.1 400 /)
    assert.deepEqual(Object.keys(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')), ['error', 'message'])
    assert.match(
      await raw(`GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`),
      /request headers are too large/,
    )
  })

  test('without a Host header gets a problem', async () => {
    const answer = await raw('GET /things/1 HTTP/1.1\r\nconnection: close\r\n\r\n')
    assert.match(answer, /^HTTP\/1\.1 400 /)
    assert.match(answer, /x-request-id: /)
    assert.match(answer, /"error":"invalid_parameter","message":"The request has no Host header\."/)
  })

  test('with an unknown Expect header is served', async () => {
    const answer = await raw('GET /things/1 HTTP/1.1\r\nhost: x\r\nexpect: cake\r\nconnection: close\r\n\r\n')
    assert.match(answer, /^HTTP\/1\.1 200 /)
  })

  test('whose client disconnects while sending the body is not logged as an error', async () => {
    const before = logLines.length
    const fields = [
      'host: x',
      'content-type: application/json',
      'content-length: 100',
      'expect: 100-continue',
    ]
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.write(`POST /things HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`)
    // The server has started the request once it sends 100 Continue.
    await once(socket, 'data')
    socket.write('{"count":', () => socket.destroy())
    await eventually('the request is logged', () => logLines.length > before)
    await sleep(100)
    const levels = logLines.slice(before).map((line) => JSON.parse(line).level)
    assert.deepEqual([...new Set(levels)], ['info'])
  })

  test('has a generated id in the response and in the log, regardless of the id that the caller sends', async () => {
    const response = await fetch(`${url}/things/1?q=canary-query`, { headers: { 'x-request-id': 'forged' } })
    const id = response.headers.get('x-request-id') ?? ''
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/, 'a UUIDv7')
    const line = logLines.map((text) => JSON.parse(text)).find(({ request_id }) => request_id === id)
    assert.equal(line.route, '/things/:id')
    assert.equal(line.status, 200)
    assert.ok(!logLines.join('').includes('forged'))
    assert.ok(!logLines.join('').includes('canary-query'), 'URLs stay out of the log')
  })

  test("behind a trusted proxy has the client's address, which the client cannot forge", async () => {
    const forwarded = await fetch(`${url}/address`, {
      headers: { 'x-forwarded-for': '203.0.113.9, 198.51.100.7' },
    })
    assert.deepEqual(await forwarded.json(), { ip: '198.51.100.7' })
  })
})

describe('an error', () => {
  test('in the server is logged without disclosing its cause to the client', async () => {
    const message = await assertProblem(await fetch(`${url}/bug`), 500, 'internal_error')
    assert.ok(!message.includes('canary'))
    assert.ok(
      !(await assertProblem(await fetch(`${url}/internal`), 500, 'internal_error')).includes('canary'),
    )
    assert.ok(logLines.join('').includes('secret internals'))
  })

  test('that is temporary has a Retry-After header', async () => {
    const response = await fetch(`${url}/busy`)
    assert.equal(response.headers.get('retry-after'), '7')
    await assertProblem(response, 503, 'unavailable')
  })

  test('has a code from a closed list, with one status per code', () => {
    assert.deepEqual(Object.keys(statusOf), [...errorCodes])
    assert.equal(new Set(errorCodes).size, errorCodes.length)
  })
})

test('every response has headers that stop browsers from interpreting it as anything but data', async () => {
  for (const path of ['/things/1', '/nowhere', '/bug']) {
    const { headers } = await fetch(url + path)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('content-security-policy'), "default-src 'none'; frame-ancestors 'none'")
    assert.match(headers.get('strict-transport-security') ?? '', /max-age/)
  }
})

test('fields with the name of a secret are redacted in log lines, even when nested', () => {
  const before = logLines.length
  const canary = 'canary-secret'
  log.info({
    password: canary,
    headers: { authorization: canary, cookie: canary, 'set-cookie': canary },
    body: { user: { secret: canary, token: canary, new_password: canary } },
  })
  const lines = logLines.slice(before)
  assert.equal(lines.length, 1)
  assert.ok(!lines.join('').includes(canary))
  assert.ok(lines.join('').includes('[redacted]'))
})

function raw(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(text))
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.on('close', () => resolve(answer))
    socket.on('error', reject)
  })
}
