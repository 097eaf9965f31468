import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { ByteBudget } from './byte-budget.ts'

const [one, other] = [1, 2]

describe('a budget of bytes', () => {
  test('gives one holder a quarter at most, so that others need not wait for it', async () => {
    const bytes = new ByteBudget<number>(100)
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

  test('gives more than a quarter, or than all, to a holder that has nothing', async () => {
    const bytes = new ByteBudget<number>(100)
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

  test('serves a holder that waits for much before those that come after', async () => {
    const bytes = new ByteBudget<number>(100)
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
