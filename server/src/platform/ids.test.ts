import assert from 'node:assert/strict'
import { test } from 'node:test'
import { daysOf, uuid7 } from './ids.ts'

test('daysOf returns the bounds of the first and the last UTC day covered by the ids', () => {
  const [late, early, next] = [
    '2026-11-14T23:59:59.999Z',
    '2026-11-14T00:00:00Z',
    '2026-11-15T00:00:00Z',
  ].map((moment) => uuid7(Date.parse(moment))) as [string, string, string]
  const one = daysOf([late, early])
  assert.ok(one.first <= early && late <= one.last && one.last < next)
  assert.equal(one.first, '01a1d75a-9400-0000-0000-000000000000')
  const two = daysOf([next, late])
  assert.deepEqual([two.first, two.last > next], [one.first, true])
})

test('daysOf returns ids for the last time that an id can contain', () => {
  const last = 'ffffffff-ffff-7fff-bfff-ffffffffffff'
  assert.deepEqual(daysOf([last]), {
    first: 'fffffed0-3000-0000-0000-000000000000',
    last: 'ffffffff-ffff-ffff-ffff-ffffffffffff',
  })
})
