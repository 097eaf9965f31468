import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bodyOf, signedHeaders, signingKey } from './signature.ts'

test('the body of an event contains its own data and the data shared with other events', () => {
  const about = { type: 'inbound.received', created_at: new Date(0), project_id: 7, message_id: null }
  const data = JSON.stringify({ inbound_id: 'a', envelope: { from: '', to: 'x@example.com' } })
  const rest = Buffer.from(JSON.stringify({ text: 'ä"}', attachments: [], raw_url: 'https://a.example/' }))
  const body = bodyOf({ ...about, tags: undefined, metadata: undefined, data, rest })
  assert.deepEqual(JSON.parse(body.toString()), {
    type: 'inbound.received',
    timestamp: '1970-01-01T00:00:00.000Z',
    data: { ...JSON.parse(data), project_id: 7, ...JSON.parse(rest.toString()) },
  })
})

test('the body of an event about a message contains the stored JSON unchanged', () => {
  const about = { type: 'message.sent', created_at: new Date(0), project_id: 7, message_id: 'm' }
  const notes = { tags: '["a", "\\"b"]', metadata: '{"order": 10000000000000000001, "note": "}{ä"}' }
  const body = String(bodyOf({ ...about, ...notes, data: '{"status": "2.0.0", "n": 1.10}' }))
  const [tags, metadata] = [JSON.parse(notes.tags), JSON.parse(notes.metadata)]
  assert.deepEqual(JSON.parse(body), {
    type: 'message.sent',
    timestamp: '1970-01-01T00:00:00.000Z',
    data: { status: '2.0.0', n: 1.1, project_id: 7, message_id: 'm', tags, metadata },
  })
  for (const text of ['10000000000000000001', '1.10']) assert.ok(body.includes(text), text)
})

test('the body of an event without data, tags and metadata is complete', () => {
  const about = { type: 'message.sent', created_at: new Date(0), project_id: 7, message_id: 'm' }
  const none = { tags: undefined, metadata: undefined }
  const { data } = JSON.parse(String(bodyOf({ ...about, ...none, data: '{}' })))
  assert.deepEqual(data, { project_id: 7, message_id: 'm', tags: [], metadata: {} })
})

test('a body has the same signature as text and as octets', () => {
  const key = signingKey(`whsec_${Buffer.from('a secret').toString('base64')}`)
  const body = '{"text":"ä \u{1f600}"}'
  assert.deepEqual(signedHeaders(key, 'id', 1, body), signedHeaders(key, 'id', 1, Buffer.from(body)))
})
