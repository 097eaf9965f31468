import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { nextStep, type VerificationState, warningDue } from './check-schedule.ts'
import type { Result } from './evaluate-records.ts'

const minute = 60
const hour = 60 * minute
const day = 24 * hour
const daysMs = (days: number) => days * day * 1000

interface Case {
  from: VerificationState['status']
  /** The number of days for which a record has been missing, or null if none is missing. */
  days: number | null
  /** The number of days for which DNS lookups have failed. */
  unanswered?: number
  failed?: number
  isKeyPending?: boolean
  found: Result
  to: VerificationState['status']
  /** Null if checked only on request. */
  again: number | null
}

const cases: Case[] = [
  // pending → verified
  { from: 'pending', days: 0, found: 'complete', to: 'verified', again: day },
  { from: 'pending', days: 13.9, failed: 40, found: 'complete', to: 'verified', again: day },
  { from: 'pending', days: 40, found: 'complete', to: 'verified', again: day },
  // pending: 1, 2, 4 … minutes, at most 6 hours
  ...[1, 2, 4, 8, 16, 32, 64, 128, 256].map(
    (minutes, failed): Case => ({
      from: 'pending',
      days: 0.5,
      failed,
      found: 'incomplete',
      to: 'pending',
      again: minutes * minute,
    }),
  ),
  { from: 'pending', days: 2, failed: 9, found: 'incomplete', to: 'pending', again: 6 * hour },
  { from: 'pending', days: 13.9, failed: 5000, found: 'incomplete', to: 'pending', again: 6 * hour },
  // pending → failed after 14 days
  { from: 'pending', days: 14, failed: 60, found: 'incomplete', to: 'failed', again: day },
  { from: 'pending', days: 31, failed: 60, found: 'incomplete', to: 'failed', again: null },
  // failed lookups change nothing
  { from: 'pending', days: 0, found: 'unknown', to: 'pending', again: minute },
  { from: 'pending', days: 20, failed: 60, found: 'unknown', to: 'pending', again: day },
  { from: 'pending', days: 40, failed: 60, found: 'unknown', to: 'pending', again: day },
  // verified
  { from: 'verified', days: null, found: 'complete', to: 'verified', again: day },
  { from: 'verified', days: 2, failed: 40, found: 'complete', to: 'verified', again: day },
  { from: 'verified', days: null, isKeyPending: true, found: 'complete', to: 'verified', again: hour },
  { from: 'verified', days: null, found: 'incomplete', to: 'verified', again: hour },
  { from: 'verified', days: 2.9, failed: 60, found: 'incomplete', to: 'verified', again: hour },
  { from: 'verified', days: null, found: 'unknown', to: 'verified', again: hour },
  { from: 'verified', days: 100, failed: 5000, found: 'unknown', to: 'verified', again: hour },
  // only verified → failed after 14 days of failed lookups
  {
    from: 'verified',
    days: null,
    unanswered: 13.9,
    failed: 400,
    found: 'unknown',
    to: 'verified',
    again: hour,
  },
  { from: 'verified', days: null, unanswered: 14, failed: 400, found: 'unknown', to: 'failed', again: day },
  { from: 'pending', days: 20, unanswered: 20, failed: 60, found: 'unknown', to: 'pending', again: day },
  { from: 'failed', days: null, unanswered: 40, failed: 60, found: 'unknown', to: 'failed', again: day },
  // verified → failed after 3 days
  { from: 'verified', days: 3, failed: 70, found: 'incomplete', to: 'failed', again: day },
  { from: 'verified', days: 100, failed: 5000, found: 'incomplete', to: 'failed', again: day },
  // failed → verified
  { from: 'failed', days: 3, found: 'complete', to: 'verified', again: day },
  { from: 'failed', days: 400, found: 'complete', to: 'verified', again: day },
  // failed: daily for 30 days
  { from: 'failed', days: 3, found: 'incomplete', to: 'failed', again: day },
  { from: 'failed', days: 29.9, found: 'incomplete', to: 'failed', again: day },
  { from: 'failed', days: 30, found: 'incomplete', to: 'failed', again: null },
  { from: 'failed', days: 29.9, found: 'unknown', to: 'failed', again: day },
  { from: 'failed', days: 30, found: 'unknown', to: 'failed', again: day },
]

const inWords = (seconds: number | null): string =>
  seconds === null ? 'only on request' : `next check in ${seconds / minute} min`

describe('the check schedule', () => {
  for (const { from, days, unanswered = null, failed = 0, isKeyPending = false, found, to, again } of cases) {
    const since =
      (days === null ? '' : `, record missing for ${days} days`) +
      (unanswered === null ? '' : `, lookups failing for ${unanswered} days`)
    const waiting = isKeyPending ? ', key pending' : ''
    test(`${from}${since}${waiting}, ${failed} failed checks, ${found}: ${to}, ${inWords(again)}`, () => {
      const state = {
        status: from,
        failingForMs: days === null ? null : daysMs(days),
        checksFailed: failed,
        unansweredForMs: unanswered === null ? null : daysMs(unanswered),
        isKeyPending,
      }
      for (let round = 0; round < 50; round++) {
        const { status, delaySeconds } = nextStep(state, found)
        assert.equal(status, to)
        if (again === null) assert.equal(delaySeconds, null)
        else assert.ok(delaySeconds !== null && delaySeconds >= again && delaySeconds <= again * 1.1)
      }
    })
  }

  test('warns about failing DNS lookups once each after 3, 10 and 14 days', () => {
    const due = (days: number | null, warned: number) =>
      warningDue(days === null ? null : daysMs(days), warned)
    assert.deepEqual(
      [
        due(null, 0),
        due(2.9, 0),
        due(3, 0),
        due(9.9, 3),
        due(10, 3),
        due(13.9, 10),
        due(14, 10),
        due(20, 14),
      ],
      [undefined, undefined, 3, undefined, 10, undefined, 14, undefined],
    )
    assert.equal(due(11, 0), 10, 'the later of two due warnings')
  })

  test('adds jitter to the checks', () => {
    const state: VerificationState = {
      status: 'verified',
      failingForMs: null,
      checksFailed: 0,
      unansweredForMs: null,
      isKeyPending: false,
    }
    const delays = Array.from({ length: 200 }, () => nextStep(state, 'complete').delaySeconds)
    assert.ok(new Set(delays).size > 150)
  })
})
