import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Passing } from './tapped-proxy.ts'
import { readTls } from './tls.ts'

const record = (text: string): Buffer => {
  const body = Buffer.from(text)
  return Buffer.concat([Buffer.from([0x17, 3, 3, 0, body.length]), body])
}

test('each record is reported before it is forwarded, however it is fragmented', () => {
  const reported: Passing['when'][] = []
  const reader = readTls(({ when }) => {
    reported.push(when)
    return false
  })
  const bytes = Buffer.concat([record('one'), record('another'), record('')])
  const passed = Array.from(bytes, (_, place) => reader.there(bytes.subarray(place, place + 1)))
  assert.deepEqual(Buffer.concat(passed), bytes)
  assert.deepEqual(reported, ['before', 'before', 'before'])
  assert.deepEqual(
    reader.back(Buffer.concat([record('a'), record('b')])),
    Buffer.concat([record('a'), record('b')]),
  )
  assert.deepEqual(reported.slice(3), ['after', 'after'])
})

test('no record is forwarded in either direction after a cut', () => {
  let left = 2
  const reader = readTls(() => --left === 0)
  assert.deepEqual(
    reader.there(Buffer.concat([record('one'), record('two'), record('three')])),
    record('one'),
  )
  assert.equal(reader.back(record('answer')).length, 0)
  assert.equal(reader.there(record('four')).length, 0)
  assert.equal(left, 0)
})
