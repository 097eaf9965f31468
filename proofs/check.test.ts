import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { check, type Evidence, eventsOfDelivered, faultsOf } from './check.ts'

const mail = { id: 'a', recipient: 'ada@example.net' }
const told = { 'message.accepted': 1, 'message.sent': 1, 'message.delivered': 1 }
const well: Evidence = {
  promised: [mail],
  answers: [
    { status: 503, error: 'unavailable', hasRetryAfter: true },
    { status: 409, error: 'request_in_progress', hasRetryAfter: false },
  ],
  unanswered: ['bob@example.net'],
  received: [mail],
  stored: [{ ...mail, status: 'delivered', events: told }],
  inFlight: [[], [mail]],
  finalStatuses: ['delivered'],
  told: { ...eventsOfDelivered, 'message.bounced': [0, 0] },
}

describe('the checker', () => {
  test('is content with what was promised once and received once', () => {
    assert.deepEqual(faultsOf(check(well)), [])
  })

  test('is content with a mail received twice that was in flight, and with an answer that was lost', () => {
    const unanswered = { id: 'b', recipient: 'bob@example.net' }
    const verdict = check({ ...well, received: [mail, mail, unanswered] })
    assert.deepEqual(faultsOf(verdict), [])
    assert.deepEqual([verdict.duplicates, verdict.sentUnanswered], [1, 1])
  })

  const planted: [string, Partial<Evidence>, RegExp][] = [
    ['a mail that was lost', { received: [] }, /promised and lost/],
    ['a mail that the database does not know', { stored: [] }, /promised and not stored/],
    [
      'a mail that nobody sent',
      { received: [mail, { id: 'c', recipient: 'eve@example.net' }] },
      /without a request/,
    ],
    ['a mail under two ids', { received: [mail, { ...mail, id: 'c' }] }, /without a request/],
    ['a mail sent again for no reason', { received: [mail, mail], inFlight: [] }, /than explained/],
    ['a mail sent three times for one kill', { received: [mail, mail, mail] }, /than explained/],
    [
      'a mail left behind',
      { stored: [{ ...mail, status: 'queued', events: told }] },
      /not in a final status/,
    ],
    [
      'an event told twice',
      { stored: [{ ...mail, status: 'delivered', events: { ...told, 'message.sent': 2 } }] },
      /wrong number of events/,
    ],
    [
      'an event that is not told',
      { stored: [{ ...mail, status: 'delivered', events: { 'message.sent': 1 } }] },
      /wrong number of events/,
    ],
    [
      'an event that must not be told',
      { stored: [{ ...mail, status: 'delivered', events: { ...told, 'message.bounced': 1 } }] },
      /wrong number of events/,
    ],
    [
      'an answer that blames nobody',
      { answers: [{ status: 500, error: 'internal_error', hasRetryAfter: false }] },
      /unexpected responses/,
    ],
    [
      'an answer that does not say when to come again',
      { answers: [{ status: 503, error: 'unavailable', hasRetryAfter: false }] },
      /unexpected responses/,
    ],
    [
      'a refusal of what was allowed',
      { answers: [{ status: 401, error: 'unauthenticated', hasRetryAfter: false }] },
      /unexpected responses/,
    ],
    ['a run that proves nothing', { promised: [], received: [], stored: [] }, /nothing was promised/],
  ]
  for (const [what, change, fault] of planted) {
    test(`notices ${what}`, () => {
      const faults = faultsOf(check({ ...well, ...change }))
      assert.equal(faults.length, 1, faults.join('\n'))
      assert.match(faults[0] ?? '', fault)
    })
  }
})
