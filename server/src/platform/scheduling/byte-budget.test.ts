import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { ByteBudget } from './byte-budget.ts'

const [one, other] = [1, 2]

describe('a byte budget', () => {
  test('limits one holder to a quarter of the budget, so that other holders do not have to wait', async () => {
    const bytes = new ByteBudget<number>(100)
    const granted: string[] = []
    const take = async (size: number, projectId: number, name: string) => {
      const release = await bytes.take(size, projectId)
      granted.push(name)
      return release
    }
    const first = await take(20, one, 'first')
    const second = take(20, one, 'second')
    await take(20, other, 'of another')
    assert.deepEqual(granted, ['first', 'of another'])
    first()
    await second
    assert.deepEqual(granted, ['first', 'of another', 'second'])
  })

  test('grants a request above the share, or above the whole budget, to a holder without bytes', async () => {
    const bytes = new ByteBudget<number>(100)
    const release = await bytes.take(500, one)
    let isGranted = false
    const waits = bytes.take(1, other).then(() => {
      isGranted = true
    })
    await soon()
    assert.equal(isGranted, false)
    release()
    release()
    await waits
  })

  test('serves a large request before later small ones', async () => {
    const bytes = new ByteBudget<number>(100)
    const release = await bytes.take(50, one)
    const order: number[] = []
    const large = bytes.take(100, other).then((releaseLarge) => {
      order.push(other)
      releaseLarge()
    })
    const small = bytes.take(1, 3).then(() => order.push(3))
    await soon()
    release()
    await Promise.all([large, small])
    assert.deepEqual(order, [other, 3])
  })
})
