import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { unavailable } from '../db/failures.ts'
import { BatchWriter } from './batch-writer.ts'

const statementTimeout = () => unavailable(Object.assign(new Error('canceled'), { code: '57014' }))
const connectionLost = () => unavailable(Object.assign(new Error('lost'), { code: 'ECONNRESET' }))
const never = Number.POSITIVE_INFINITY

/** Writes numbers; `fault` says what a transaction fails with. */
function recording(fault: (items: readonly number[], time: number) => Error | undefined) {
  const transactions: number[][] = []
  const written: number[] = []
  const lost: { message: string; count: number }[] = []
  const recorder = new BatchWriter<number>({
    async write(items) {
      transactions.push([...items])
      const error = fault(items, transactions.length)
      if (error) throw error
      written.push(...items)
    },
    atOnce: 100,
    onError: (error, count) => void lost.push({ message: (error as Error).message, count }),
  })
  return { recorder, transactions, written, lost }
}

describe('a recorder', () => {
  test('writes what comes in one turn of the event loop in one transaction', async () => {
    const { recorder, transactions } = recording(() => undefined)
    await Promise.all([1, 2, 3].map((item) => recorder.submit(item, never)))
    assert.deepEqual(transactions, [[1, 2, 3]])
    assert.equal(recorder.pending, 0)
  })

  test('splits a group that times out: the others are written, and the culprit is tried again alone', async () => {
    const { recorder, transactions, written } = recording((items, time) =>
      items.includes(3) && time < 9 ? statementTimeout() : undefined,
    )
    const items = [1, 2, 3, 4, 5, 6, 7, 8]
    await Promise.all(items.map((item) => recorder.submit(item, never)))
    assert.deepEqual(written.toSorted(), items)
    assert.deepEqual(written.slice(0, 7).toSorted(), [1, 2, 4, 5, 6, 7, 8])
    const alone = transactions.findIndex((group) => group.length === 1 && group[0] === 3)
    for (const group of transactions.slice(alone)) assert.ok(group.length === 1 || !group.includes(3))
  })

  test('loses an item that PostgreSQL refuses, and no other one', async () => {
    const { recorder, written, lost } = recording((items) =>
      items.includes(2) ? new Error('check constraint') : undefined,
    )
    await Promise.all([1, 2, 3, 4].map((item) => recorder.submit(item, never)))
    assert.deepEqual(written.toSorted(), [1, 3, 4])
    assert.deepEqual(lost, [{ message: 'check constraint', count: 1 }])
  })

  test('keeps everything together while the database is away, and writes it afterwards', async () => {
    const { recorder, transactions, written } = recording((_, time) =>
      time < 3 ? connectionLost() : undefined,
    )
    await Promise.all([1, 2, 3].map((item) => recorder.submit(item, never)))
    assert.deepEqual(written, [1, 2, 3])
    assert.deepEqual(transactions, [
      [1, 2, 3],
      [1, 2, 3],
      [1, 2, 3],
    ])
  })

  test('gives up an item whose time is over', async () => {
    const { recorder, written, lost } = recording(connectionLost)
    await Promise.all([1, 2].map((item) => recorder.submit(item, 0)))
    assert.deepEqual(written, [])
    assert.equal(lost.at(-1)?.count, 2)
    assert.equal(recorder.pending, 0)
  })

  test('begins again for an item that comes as soon as another one is written', async () => {
    const { recorder, written } = recording(() => undefined)
    for (let item = 0; item < 20; item++) await recorder.submit(item, never)
    assert.equal(written.length, 20)
  })
})
