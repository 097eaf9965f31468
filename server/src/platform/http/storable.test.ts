import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { unstorableText } from './storable.ts'

const messageOf = (body: unknown) => unstorableText(body)?.message

describe('text that PostgreSQL cannot store', () => {
  test('is rejected with the name of its field', () => {
    assert.equal(messageOf({ reason: 'a\0b' }), '"reason" must not contain control characters.')
    assert.equal(messageOf({ to: ['a', 'b\0'] }), '"to[1]" must not contain control characters.')
    assert.equal(
      messageOf({ messages: [{}, { tags: ['\ud800'] }] }),
      '"messages[1].tags[0]" must not contain an unpaired surrogate.',
    )
  })

  test('is rejected in a field name, which the message does not repeat', () => {
    assert.equal(
      messageOf({ metadata: { 'a\0': 1 } }),
      'The name of a field must not contain control characters.',
    )
  })

  test('is found at any depth, and ordinary text is accepted', () => {
    let nested: unknown = 'a\0'
    for (let depth = 0; depth < 100_000; depth++) nested = [nested]
    const message = messageOf({ nested }) ?? ''
    assert.ok(message.startsWith('"nested[0][0]') && message.length < 200)
    assert.equal(messageOf({ reason: 'a\nb 😀', nothing: null, count: 1 }), undefined)
  })
})
