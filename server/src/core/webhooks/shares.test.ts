import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { Bytes } from './bytes.ts'
import { Places } from './places.ts'

const [one, other] = [1, 2]

describe('bytes', () => {
  test('of one project are a quarter at most, so that others need not wait for it', async () => {
    const bytes = new Bytes(100)
    const given: string[] = []
    const take = async (size: number, projectId: number, name: string) => {
      const giveBack = await bytes.take(size, projectId)
      given.push(name)
      return giveBack
    }
    const first = await take(20, one, 'first')
    const second = take(20, one, 'second')
    await take(20, other, 'of another')
    assert.deepEqual(given, ['first', 'of another'])
    first()
    await second
    assert.deepEqual(given, ['first', 'of another', 'second'])
  })

  test('that are more than a quarter, or than all, are given to who holds none', async () => {
    const bytes = new Bytes(100)
    const giveBack = await bytes.take(500, one)
    let isGiven = false
    const waits = bytes.take(1, other).then(() => {
      isGiven = true
    })
    await soon()
    assert.equal(isGiven, false)
    giveBack()
    giveBack()
    await waits
  })

  test('are given to whoever waits for many before those that come after', async () => {
    const bytes = new Bytes(100)
    const giveBack = await bytes.take(50, one)
    const order: number[] = []
    const large = bytes.take(100, other).then((back) => {
      order.push(other)
      back()
    })
    const small = bytes.take(1, 3).then(() => order.push(3))
    await soon()
    giveBack()
    await Promise.all([large, small])
    assert.deepEqual(order, [other, 3])
  })
})

test('a project has no more places than it leaves, whatever number of endpoints it has', () => {
  const places = new Places({ proven: 8, unproven: 1 })
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
