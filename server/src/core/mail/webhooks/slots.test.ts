import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WebhookSlots } from './slots.ts'

const [one, other] = [1, 2]

test('a project uses at most as many slots as remain free, regardless of how many endpoints it has', () => {
  const slots = new WebhookSlots({ healthy: 8, failing: 1 })
  let taken = 0
  while (slots.tryTake(0, one)) taken++
  assert.equal(taken, 5)
  assert.ok(slots.tryTake(0, other))
  const woken: number[] = []
  slots.onFree(() => woken.push(one), one)
  slots.onFree(() => woken.push(other), other)
  slots.release(one)
  assert.deepEqual(woken, [other], 'a project that cannot take it is not called')
})
