import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { patienceMs } from '../server/src/testing/harness/waiting.ts'
import { type Isolation, proveIsolation } from './isolation.ts'

/** Simulates a peer that withholds all responses, with a set number of other arrivals at each poll. */
function makePeer({ arrivalsPerPoll, givenUpIn = 0 }: { arrivalsPerPoll: number; givenUpIn?: number }) {
  const calls: string[] = []
  let polls = 0
  let givenUp = 0
  const isolation: Isolation = {
    prepare: async () => void calls.push('prepare'),
    hold: async () => void calls.push('hold'),
    release: () => void calls.push('release'),
    held() {
      // In the first attempts a request times out at the second poll.
      if (++polls % 2 === 0 && givenUp < givenUpIn) givenUp++
      return { pending: 5, givenUp }
    },
    isFull: async () => true,
    arrived: async () => polls * arrivalsPerPoll,
    enough: 20,
    patienceMs,
  }
  return { isolation, calls }
}

describe('isolation', () => {
  test('is proved by arrivals while a peer withholds its responses', async () => {
    const { isolation, calls } = makePeer({ arrivalsPerPoll: 10 })
    assert.deepEqual(await proveIsolation(isolation), [])
    assert.deepEqual(calls, ['prepare', 'hold', 'release'])
  })

  test('is tried again if a request times out in the meantime', async () => {
    const { isolation, calls } = makePeer({ arrivalsPerPoll: 10, givenUpIn: 1 })
    assert.deepEqual(await proveIsolation(isolation), [])
    assert.deepEqual(calls, ['prepare', 'hold', 'release', 'prepare', 'hold', 'release'])
  })

  test('fails if nothing else arrives', async () => {
    const { isolation } = makePeer({ arrivalsPerPoll: 0 })
    const [fault] = await proveIsolation({ ...isolation, patienceMs: 500 })
    assert.match(fault ?? '', /20 others never arrived/)
  })

  test('ignores arrivals before the peer has all the requests it can get', async () => {
    const { isolation } = makePeer({ arrivalsPerPoll: 100 })
    const [fault] = await proveIsolation({ ...isolation, isFull: async () => false, patienceMs: 500 })
    assert.match(fault ?? '', /20 others never arrived/)
  })
})
