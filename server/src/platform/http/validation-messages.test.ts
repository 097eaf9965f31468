import assert from 'node:assert/strict'
import { test } from 'node:test'
import Type from 'typebox'
import { createLogger } from '../telemetry/log.ts'
import { createHttpServer } from './server.ts'

const app = createHttpServer({ log: createLogger('silent'), trustedProxies: [], isHttps: false })
const Body = Type.Object(
  {
    name: Type.String({ maxLength: 5 }),
    plan: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),
    level: Type.Optional(Type.Union([Type.Enum(['low', 'high'], { type: 'string' }), Type.Null()])),
    note: Type.Optional(Type.Union([Type.String({ minLength: 1 }), Type.Null()])),
    id: Type.Optional(Type.String({ pattern: '^[0-9a-f]{8}-[0-9a-f]{4}$' })),
    tags: Type.Optional(
      Type.Array(Type.Enum(['a', 'b'], { type: 'string' }), { uniqueItems: true, maxItems: 3 }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    inner: Type.Optional(Type.Object({ size: Type.Integer() }, { additionalProperties: false })),
  },
  { additionalProperties: false },
)
app.post('/', { schema: { body: Body } }, async () => ({}))

const responseTo = async (payload: string | Buffer | object, type = 'application/json') => {
  const answer = await app.inject({
    method: 'POST',
    url: '/',
    headers: { 'content-type': type },
    payload: typeof payload === 'string' || Buffer.isBuffer(payload) ? payload : JSON.stringify(payload),
  })
  return `${answer.statusCode} ${answer.json().message}`
}

test('the message names the field and its requirement', async () => {
  assert.equal(await responseTo({}), '422 "name" is missing.')
  assert.equal(await responseTo({ name: 1 }), '422 "name" must be a string.')
  assert.equal(await responseTo({ name: 'x', plan: 'a' }), '422 "plan" must be an integer or null.')
  assert.equal(await responseTo({ name: 'x', level: 'mid' }), '422 "level" must be one of low, high or null.')
  assert.equal(await responseTo({ name: 'x', nmae: 1 }), '422 "nmae" is not a field of this request.')
  assert.equal(
    await responseTo({ name: 'x', inner: { size: 1, z: 2 } }),
    '422 "inner.z" is not a field of this request.',
  )
  assert.equal(await responseTo({ name: 'too long' }), '422 "name" must have at most 5 characters.')
  assert.equal(await responseTo([]), '422 The body must be an object.')
  assert.equal(
    await responseTo({ name: 'x', note: '' }),
    '422 "note" must have at least 1 character, or be null.',
  )
  assert.equal(await responseTo({ name: 'x', id: '7' }), '422 "id" must be a UUID.')
  assert.equal(await responseTo({ name: 'x', tags: ['a', 'b', 'a'] }), '422 "tags" must not repeat "a".')
  assert.equal(await responseTo({ name: 'x', tags: ['c'] }), '422 "tags[0]" must be one of a, b.')
  assert.equal(await responseTo({ name: 'x', limit: 101 }), '422 "limit" must be at most 100.')
  assert.equal(await responseTo({ name: 'x', limit: 0 }), '422 "limit" must be at least 1.')
})

test('the message stays short, regardless of the input', async () => {
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`${'x'.repeat(300)}${n}`, n]))
  assert.ok((await responseTo({ name: 'x', ...many })).length < 2_000)
})

test('a body with a content coding is rejected', async () => {
  const sendEncoded = (encoding: string) =>
    app.inject({
      method: 'POST',
      url: '/',
      headers: { 'content-type': 'application/json', 'content-encoding': encoding },
      payload: '{"name":"x"}',
    })
  for (const encoding of ['gzip', 'br', 'identity, deflate']) {
    const answer = await sendEncoded(encoding)
    assert.deepEqual([answer.statusCode, answer.json().error], [415, 'unsupported_media_type'])
  }
  assert.equal((await sendEncoded('Identity')).statusCode, 200)
})

test('text that is not UTF-8 is rejected, not replaced', async () => {
  const broken = Buffer.concat([Buffer.from('{"name":"a'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')])
  assert.match(await responseTo(broken), /^400 The body is not UTF-8/)
  assert.match(await responseTo('{"name":"x"}', 'application/json; charset=iso-8859-1'), /^415 .*UTF-8/)
  assert.equal(await responseTo('{"name":"x"}', 'application/json; charset=UTF-8'), '200 undefined')
})
