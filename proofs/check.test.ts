import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { check, type Evidence, eventsOfDelivered, faultsOf } from './check.ts'

const mail = { id: 'a', recipient: 'ada@example.net' }
const events = { 'message.accepted': 1, 'message.sent': 1, 'message.delivered': 1 }
const well: Evidence = {
  promised: [mail],
  answers: [
    { status: 503, error: 'unavailable', hasRetryAfter: true },
    { status: 409, error: 'request_in_progress', hasRetryAfter: false },
  ],
  unanswered: ['bob@example.net'],
  received: [mail],
  stored: [{ ...mail, status: 'delivered', events }],
  inFlight: [[], [mail]],
  finalStatuses: ['delivered'],
  expectedEvents: { ...eventsOfDelivered, 'message.bounced': [0, 0] },
}

describe('the checker', () => {
  test('accepts a message that was acknowledged once and received once', () => {
    assert.deepEqual(faultsOf(check(well)), [])
  })

  test('accepts a duplicate that was in flight at a fault, and a lost response', () => {
    const unanswered = { id: 'b', recipient: 'bob@example.net' }
    const verdict = check({ ...well, received: [mail, mail, unanswered] })
    assert.deepEqual(faultsOf(verdict), [])
    assert.deepEqual([verdict.duplicates, verdict.sentUnanswered], [1, 1])
  })

  const planted: [string, Partial<Evidence>, RegExp][] = [
    ['a lost message', { received: [] }, /promised and lost/],
    ['a message that is not in the database', { stored: [] }, /promised and not stored/],
    [
      'a message without a request',
      { received: [mail, { id: 'c', recipient: 'eve@example.net' }] },
      /without a request/,
    ],
    ['a message with two ids', { received: [mail, { ...mail, id: 'c' }] }, /without a request/],
    ['a duplicate without a fault', { received: [mail, mail], inFlight: [] }, /than explained/],
    ['two duplicates for one kill', { received: [mail, mail, mail] }, /than explained/],
    [
      'a message left in the queue',
      { stored: [{ ...mail, status: 'queued', events }] },
      /not in a final status/,
    ],
    [
      'a duplicate event',
      { stored: [{ ...mail, status: 'delivered', events: { ...events, 'message.sent': 2 } }] },
      /wrong number of events/,
    ],
    [
      'a missing event',
      { stored: [{ ...mail, status: 'delivered', events: { 'message.sent': 1 } }] },
      /wrong number of events/,
    ],
    [
      'an unexpected event',
      { stored: [{ ...mail, status: 'delivered', events: { ...events, 'message.bounced': 1 } }] },
      /wrong number of events/,
    ],
    [
      'an internal error',
      { answers: [{ status: 500, error: 'internal_error', hasRetryAfter: false }] },
      /unexpected responses/,
    ],
    [
      'a 503 without Retry-After',
      { answers: [{ status: 503, error: 'unavailable', hasRetryAfter: false }] },
      /unexpected responses/,
    ],
    [
      'the rejection of an allowed request',
      { answers: [{ status: 401, error: 'unauthenticated', hasRetryAfter: false }] },
      /unexpected responses/,
    ],
    ['a run that proves nothing', { promised: [], received: [], stored: [] }, /nothing was promised/],
  ]
  for (const [what, change, fault] of planted) {
    test(`detects ${what}`, () => {
      const faults = faultsOf(check({ ...well, ...change }))
      assert.equal(faults.length, 1, faults.join('\n'))
      assert.match(faults[0] ?? '', fault)
    })
  }
})
