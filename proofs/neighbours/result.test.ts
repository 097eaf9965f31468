import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { faultsOf, lateOf, type Phase, type Received, resultOf } from './result.ts'

const mail = (number: number) => ({ id: `m${number}`, recipient: `r${number}@quiet.test`, at: 1000 })
const asked = (kind: 'POST' | 'GET', ms: number, status = 200) => ({ kind, ms, status, error: '' })
const silent = { requests: [], promised: [] }

/** Two mails, one alone and one beside the attack. */
const phases = (beside: Partial<Phase['measured']> = {}): Phase[] => [
  {
    when: 'alone',
    warmUp: silent,
    measured: { requests: [asked('POST', 10, 202), asked('GET', 5)], promised: [mail(1)] },
  },
  {
    when: 'beside',
    warmUp: silent,
    measured: { requests: [asked('POST', 15, 202), asked('GET', 5)], promised: [mail(2)], ...beside },
  },
]
const received: Received[] = [mail(1), mail(2)].map((one) => ({ ...one, at: 1100 }))

const faults = (phasesHad: Phase[], receivedBy = received) => faultsOf(resultOf(phasesHad, receivedBy))

describe('the quiet tenant beside an attack', () => {
  test('has no faults when each mail came once and every request was answered with 2xx', () => {
    assert.deepEqual(faults(phases()), [])
    assert.deepEqual(lateOf(resultOf(phases(), received), 2), [])
  })

  test('has lost a mail that was accepted and not received', () => {
    assert.match(faults(phases(), received.slice(1)).join(), /1 mails .* were lost/)
  })

  test('has a mail twice that was received twice', () => {
    assert.match(faults(phases(), [...received, ...received.slice(1)]).join(), /1 mails .* more than once/)
  })

  test('was refused by any status but 2xx, and by no answer, in the warm-up too', () => {
    for (const status of [0, 302, 429, 500, 503]) {
      assert.match(faults(phases({ requests: [asked('GET', 5, status)] })).join(), /1 requests .* refused/)
      const [alone, beside] = phases()
      assert.ok(alone && beside)
      const warmUp = { requests: [asked('GET', 5, status)], promised: [] }
      assert.match(faults([alone, { ...beside, warmUp }]).join(), /1 requests .* refused/)
    }
  })

  test('has proved nothing when it has sent nothing', () => {
    assert.match(faults([], []).join(), /nothing was proved/)
  })

  test('is late by the ratio of the 99th percentiles, for each kind of request', () => {
    const slow = resultOf(phases({ requests: [asked('POST', 25, 202), asked('GET', 9)] }), received)
    assert.deepEqual(
      slow.times.map(({ kind, ratio }) => `${kind} ${ratio}`),
      ['POST 2.5', 'GET 1.8', 'acceptance to MTA 1'],
    )
    assert.equal(lateOf(slow, 2).length, 1)
    assert.match(lateOf(slow, 2).join(), /POST was 2.50 times/)
  })

  test('is late when nothing was measured', () => {
    assert.equal(lateOf(resultOf(phases({ requests: [] }), received), 2).length, 2)
  })
})
