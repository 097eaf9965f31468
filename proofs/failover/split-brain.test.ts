import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Acknowledged, longestGap, missing, splitBrains } from './split-brain.ts'

/** A write that took ten milliseconds. */
const write = (node: string, timeline: number, askedAt: number): Acknowledged => ({
  node,
  number: askedAt,
  askedAt,
  answeredAt: askedAt + 10,
  timeline: timeline.toString(16).padStart(8, '0'),
})

test('consecutive primaries are not a split brain', () => {
  const acknowledged = [write('pg1', 1, 0), write('pg1', 1, 100), write('pg2', 2, 500), write('pg1', 3, 900)]
  assert.deepEqual(splitBrains(acknowledged), [])
})

test('a write on the old timeline after the first write on the new one is a split brain', () => {
  const acknowledged = [write('pg1', 1, 0), write('pg2', 2, 500), write('pg1', 1, 600)]
  assert.deepEqual(splitBrains(acknowledged), [
    '1 writes on timeline 00000001 after the first one on 00000002',
  ])
})

test('two nodes on one timeline are a split brain', () => {
  assert.deepEqual(splitBrains([write('pg1', 1, 0), write('pg2', 1, 500)]), [
    'pg1 and pg2 both wrote on timeline 00000001',
  ])
})

test('an acknowledged write that is not stored is missing', async () => {
  const lost = write('pg2', 2, 500)
  const acknowledged = [write('pg1', 1, 0), lost]
  assert.deepEqual(await missing(async () => [{ node: 'pg1', number: 0 }], acknowledged), [lost])
})

test('the longest gap is between two adjacent writes', () => {
  assert.equal(longestGap([500, 0, 100, 1200]), 700)
  assert.equal(longestGap([]), 0)
})
