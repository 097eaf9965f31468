import assert from 'node:assert/strict'
import { test } from 'node:test'
import { retryAfterMs, retryDelayMs } from './retry-schedule.ts'

const seconds = (failures: number) => retryDelayMs(failures, 0.5) / 1000

test('the retry delay increases up to ten hours', () => {
  const waits = [1, 2, 3, 4, 5, 6, 7, 8, 9, 30].map(seconds)
  assert.deepEqual(waits, [5, 30, 300, 1800, 7200, 18_000, 36_000, 36_000, 36_000, 36_000])
})

test('an event is retried eight times within 28 hours', () => {
  const all = [1, 2, 3, 4, 5, 6, 7, 8].map(seconds).reduce((sum, wait) => sum + wait)
  assert.ok(all > 27.5 * 3600 && all < 28 * 3600, `${all / 3600} h`)
})

test('the retry delay has a jitter of at most 10% in either direction', () => {
  assert.equal(retryDelayMs(3, 0), 270_000)
  assert.ok(retryDelayMs(3, 0.999_999) <= 330_000)
  assert.ok(retryDelayMs(3, 0.999_999) > 329_000)
})

test('both forms of Retry-After are respected, up to one day', () => {
  const now = Date.parse('2026-11-15T10:00:00Z')
  assert.equal(retryAfterMs('120', now), 120_000)
  assert.equal(retryAfterMs(' 7 ', now), 7_000)
  assert.equal(retryAfterMs('Sun, 15 Nov 2026 10:05:00 GMT', now), 300_000)
  assert.equal(retryAfterMs('9999999', now), 24 * 3_600_000)
  assert.equal(retryAfterMs('Sun, 15 Nov 2027 10:05:00 GMT', now), 24 * 3_600_000)
})

test('an invalid Retry-After is ignored', () => {
  for (const header of [
    undefined,
    '',
    '0',
    '-5',
    '1.5',
    'soon',
    '99999999999',
    'Sun, 15 Nov 2025 10:05:00 GMT',
  ]) {
    assert.equal(retryAfterMs(header, Date.parse('2026-11-15T10:00:00Z')), undefined, String(header))
  }
})
