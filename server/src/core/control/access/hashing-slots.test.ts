import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PosternError } from '../../../platform/errors.ts'
import { HashingSlots } from './hashing-slots.ts'

/** A task that finishes when the test resolves it. */
function startWork(slots: HashingSlots) {
  const running: { address: string; end: () => void }[] = []
  const started: string[] = []
  const start = (address: string) =>
    slots.run(address, async () => {
      started.push(address)
      await new Promise<void>((resolve) => running.push({ address, end: resolve }))
    })
  return { running, started, start }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))
const isRefused = (error: unknown): boolean =>
  error instanceof PosternError && error.code === 'rate_limited' && error.retryAfterSeconds === 1

describe('slots for hashing', () => {
  test('run two hashes at a time, and the others in order of arrival', async () => {
    const { running, started, start } = startWork(new HashingSlots())
    const all = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4'].map(start)
    await settled()
    assert.deepEqual(started, ['192.0.2.1', '192.0.2.2'])
    running.shift()?.end()
    await settled()
    assert.deepEqual(started, ['192.0.2.1', '192.0.2.2', '192.0.2.3'])
    while (running.length > 0) {
      running.shift()?.end()
      await settled()
    }
    await Promise.all(all)
    assert.equal(started.length, 4)
  })

  test('reject further requests from a network that has filled its queue', async () => {
    const { running, started, start } = startWork(new HashingSlots())
    // Addresses in one IPv6 network.
    const flood = Array.from({ length: 100 }, (_, n) => start(`2001:db8::${n + 1}`))
    const outcomes = Promise.allSettled(flood)
    const other = start('198.51.100.7')
    await settled()
    assert.equal(started.length, 2, 'one of the network, and the other one immediately')
    assert.ok(started.includes('198.51.100.7'))
    while (running.length > 0) {
      running.shift()?.end()
      await settled()
    }
    await other
    const refused = (await outcomes).filter(({ status }) => status === 'rejected')
    assert.equal(refused.length, 100 - 17)
    for (const outcome of refused) assert.ok(isRefused((outcome as PromiseRejectedResult).reason))
  })

  test('reject requests from many networks when the total queue is full', async () => {
    const { running, start } = startWork(new HashingSlots({ atOnce: 2, waitingAtMost: 3 }))
    const outcomes = Promise.allSettled(Array.from({ length: 8 }, (_, n) => start(`192.0.2.${n + 1}`)))
    await settled()
    while (running.length > 0) {
      running.shift()?.end()
      await settled()
    }
    const refused = (await outcomes).flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
    assert.equal(refused.length, 3)
    assert.ok(refused.every(isRefused))
  })
})
