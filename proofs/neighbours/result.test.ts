import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { faultsOf, lateOf, type Phase, type Received, resultOf } from './result.ts'

const mail = (number: number) => ({ id: `m${number}`, recipient: `r${number}@quiet.test`, at: 1000 })
const asked = (kind: 'POST' | 'GET', ms: number, status = 200) => ({ kind, ms, status, error: '' })
const silent = { requests: [], promised: [] }

/** Two messages, one without and one during the attack. */
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

describe('the quiet tenant during an attack', () => {
  test('has no faults if each message arrived once and every response was 2xx', () => {
    assert.deepEqual(faults(phases()), [])
    assert.deepEqual(lateOf(resultOf(phases(), received), 2), [])
  })

  test('has lost a message that was accepted but not received', () => {
    assert.match(faults(phases(), received.slice(1)).join(), /1 messages .* were lost/)
  })

  test('has a duplicate if a message was received twice', () => {
    assert.match(faults(phases(), [...received, ...received.slice(1)]).join(), /1 messages .* more than once/)
  })

  test('counts any status other than 2xx, and a missing response, as a rejection, even during the warm-up', () => {
    for (const status of [0, 302, 429, 500, 503]) {
      assert.match(faults(phases({ requests: [asked('GET', 5, status)] })).join(), /1 requests .* refused/)
      const [alone, beside] = phases()
      assert.ok(alone && beside)
      const warmUp = { requests: [asked('GET', 5, status)], promised: [] }
      assert.match(faults([alone, { ...beside, warmUp }]).join(), /1 requests .* refused/)
    }
  })

  test('proves nothing if it has sent nothing', () => {
    assert.match(faults([], []).join(), /nothing was proved/)
  })

  test('is slower by the ratio of the 99th percentiles, for each kind of request', () => {
    const slow = resultOf(phases({ requests: [asked('POST', 25, 202), asked('GET', 9)] }), received)
    assert.deepEqual(
      slow.times.map(({ kind, ratio }) => `${kind} ${ratio}`),
      ['POST 2.5', 'GET 1.8', 'acceptance to MTA 1'],
    )
    assert.equal(lateOf(slow, 2).length, 1)
    assert.match(lateOf(slow, 2).join(), /POST was 2.50 times/)
  })

  test('counts as too slow if nothing was measured', () => {
    assert.equal(lateOf(resultOf(phases({ requests: [] }), received), 2).length, 2)
  })
})
