import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { patienceMs } from '../server/src/testing/harness/waiting.ts'
import { type Isolation, proveIsolation } from './isolation.ts'

/** A peer that holds back all responses, and a number of other arrivals at each poll. */
function scene({ arrivalsPerLook, givenUpIn = 0 }: { arrivalsPerLook: number; givenUpIn?: number }) {
  const calls: string[] = []
  let looks = 0
  let givenUp = 0
  const isolation: Isolation = {
    prepare: async () => void calls.push('prepare'),
    hold: async () => void calls.push('hold'),
    release: () => void calls.push('release'),
    held() {
      // In the first tries somebody gives up at the second look.
      if (++looks % 2 === 0 && givenUp < givenUpIn) givenUp++
      return { pending: 5, givenUp }
    },
    isFull: async () => true,
    arrived: async () => looks * arrivalsPerLook,
    enough: 20,
    patienceMs,
  }
  return { isolation, calls }
}

describe('isolation', () => {
  test('is shown by what arrives while a peer holds back its answers', async () => {
    const { isolation, calls } = scene({ arrivalsPerLook: 10 })
    assert.deepEqual(await proveIsolation(isolation), [])
    assert.deepEqual(calls, ['prepare', 'hold', 'release'])
  })

  test('is not shown when a request was given up meanwhile: that is tried again', async () => {
    const { isolation, calls } = scene({ arrivalsPerLook: 10, givenUpIn: 1 })
    assert.deepEqual(await proveIsolation(isolation), [])
    assert.deepEqual(calls, ['prepare', 'hold', 'release', 'prepare', 'hold', 'release'])
  })

  test('is not there when nothing of others arrives', async () => {
    const { isolation } = scene({ arrivalsPerLook: 0 })
    const [fault] = await proveIsolation({ ...isolation, patienceMs: 500 })
    assert.match(fault ?? '', /20 others never arrived/)
  })

  test('counts nothing that arrived before the peer had all that it may hold back', async () => {
    const { isolation } = scene({ arrivalsPerLook: 100 })
    const [fault] = await proveIsolation({ ...isolation, isFull: async () => false, patienceMs: 500 })
    assert.match(fault ?? '', /20 others never arrived/)
  })
})
