import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { unavailable } from '../db/failures.ts'
import { BatchWriter } from './batch-writer.ts'

const statementTimeout = () => unavailable(Object.assign(new Error('canceled'), { code: '57014' }))
const connectionLost = () => unavailable(Object.assign(new Error('lost'), { code: 'ECONNRESET' }))
const never = Number.POSITIVE_INFINITY

/** Writes numbers. `fault` returns the error with which a transaction fails. */
function setUp(fault: (items: readonly number[], time: number) => Error | undefined) {
  const transactions: number[][] = []
  const written: number[] = []
  const lost: { message: string; count: number }[] = []
  const writer = new BatchWriter<number>({
    async write(items) {
      transactions.push([...items])
      const error = fault(items, transactions.length)
      if (error) throw error
      written.push(...items)
    },
    atOnce: 100,
    onError: (error, count) => void lost.push({ message: (error as Error).message, count }),
  })
  return { writer, transactions, written, lost }
}

describe('a batch writer', () => {
  test('writes items from one turn of the event loop in one transaction', async () => {
    const { writer, transactions } = setUp(() => undefined)
    await Promise.all([1, 2, 3].map((item) => writer.submit(item, never)))
    assert.deepEqual(transactions, [[1, 2, 3]])
    assert.equal(writer.pending, 0)
  })

  test('splits a group that times out, writes the other items and retries the failing one separately', async () => {
    const { writer, transactions, written } = setUp((items, time) =>
      items.includes(3) && time < 9 ? statementTimeout() : undefined,
    )
    const items = [1, 2, 3, 4, 5, 6, 7, 8]
    await Promise.all(items.map((item) => writer.submit(item, never)))
    assert.deepEqual(written.toSorted(), items)
    assert.deepEqual(written.slice(0, 7).toSorted(), [1, 2, 4, 5, 6, 7, 8])
    const single = transactions.findIndex((group) => group.length === 1 && group[0] === 3)
    for (const group of transactions.slice(single)) assert.ok(group.length === 1 || !group.includes(3))
  })

  test('abandons only the item that PostgreSQL rejects', async () => {
    const { writer, written, lost } = setUp((items) =>
      items.includes(2) ? new Error('check constraint') : undefined,
    )
    await Promise.all([1, 2, 3, 4].map((item) => writer.submit(item, never)))
    assert.deepEqual(written.toSorted(), [1, 3, 4])
    assert.deepEqual(lost, [{ message: 'check constraint', count: 1 }])
  })

  test('keeps the group together while the database is unreachable and writes it afterwards', async () => {
    const { writer, transactions, written } = setUp((_, time) => (time < 3 ? connectionLost() : undefined))
    await Promise.all([1, 2, 3].map((item) => writer.submit(item, never)))
    assert.deepEqual(written, [1, 2, 3])
    assert.deepEqual(transactions, [
      [1, 2, 3],
      [1, 2, 3],
      [1, 2, 3],
    ])
  })

  test('abandons items after their deadline', async () => {
    const { writer, written, lost } = setUp(connectionLost)
    await Promise.all([1, 2].map((item) => writer.submit(item, 0)))
    assert.deepEqual(written, [])
    assert.equal(lost.at(-1)?.count, 2)
    assert.equal(writer.pending, 0)
  })

  test('starts again for an item submitted right after a write', async () => {
    const { writer, written } = setUp(() => undefined)
    for (let item = 0; item < 20; item++) await writer.submit(item, never)
    assert.equal(written.length, 20)
  })
})
