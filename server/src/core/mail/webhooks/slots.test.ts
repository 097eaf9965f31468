import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Slots } from './slots.ts'

const [one, other] = [1, 2]

test('a project has no more places than it leaves, whatever number of endpoints it has', () => {
  const places = new Slots({ proven: 8, unproven: 1 })
  let taken = 0
  while (places.tryTake(0, one)) taken++
  assert.equal(taken, 5)
  assert.ok(places.tryTake(0, other))
  const woken: number[] = []
  places.onFree(() => woken.push(one), one)
  places.onFree(() => woken.push(other), other)
  places.leave(one)
  assert.deepEqual(woken, [other], 'who may not take it is not asked')
})
