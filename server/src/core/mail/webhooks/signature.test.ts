import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bodyOf } from './signature.ts'

test('the body of an event contains its own data and the data shared with other events', () => {
  const about = { type: 'inbound.received', created_at: new Date(0), project_id: 7, message_id: null }
  const data = JSON.stringify({ inbound_id: 'a', envelope: { from: '', to: 'x@example.com' } })
  const rest = Buffer.from(JSON.stringify({ text: 'ä"}', attachments: [], raw_url: 'https://a.example/' }))
  const body = bodyOf({ ...about, tags: null, metadata: null, data, rest })
  assert.deepEqual(JSON.parse(body.toString()), {
    type: 'inbound.received',
    timestamp: '1970-01-01T00:00:00.000Z',
    data: { ...JSON.parse(data), project_id: 7, ...JSON.parse(rest.toString()) },
  })
})
