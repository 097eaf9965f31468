import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WebhookSlots } from './slots.ts'

const [one, other] = [1, 2]

test('a project uses no more slots than it leaves free, however many endpoints it has', () => {
  const places = new WebhookSlots({ healthy: 8, failing: 1 })
  let taken = 0
  while (places.tryTake(0, one)) taken++
  assert.equal(taken, 5)
  assert.ok(places.tryTake(0, other))
  const woken: number[] = []
  places.onFree(() => woken.push(one), one)
  places.onFree(() => woken.push(other), other)
  places.release(one)
  assert.deepEqual(woken, [other], 'who may not take it is not asked')
})
