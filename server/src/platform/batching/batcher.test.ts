import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { unavailable } from '../db/failures.ts'
import { Batcher } from './batcher.ts'

/** A batcher whose groups finish when the test calls `answer`. */
function controlled(options: { groupsAtOnce: number; most: number }) {
  const groups: number[][] = []
  const ends: { answer(): void }[] = []
  const batcher = new Batcher<number, string>(
    (group) =>
      new Promise((resolve) => {
        groups.push([...group])
        ends.push({ answer: () => resolve(group.map((one) => `${one}!`)) })
      }),
    { groupsAtOnce: options.groupsAtOnce, atMost: options.most },
  )
  return { batcher, groups, ends }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('a batcher', () => {
  test('groups the items from one turn of the event loop and returns a result for each', async () => {
    const { batcher, groups, ends } = controlled({ groupsAtOnce: 1, most: 10 })
    const answers = Promise.all([3, 1, 2].map((one) => batcher.submit(one)))
    await turn()
    assert.deepEqual(groups, [[3, 1, 2]])
    ends[0]?.answer()
    assert.deepEqual(await answers, ['3!', '1!', '2!'])
  })

  test('collects items for the next group while the maximum number of groups is running', async () => {
    const { batcher, groups, ends } = controlled({ groupsAtOnce: 2, most: 2 })
    const answers = Promise.all([1, 2, 3, 4, 5].map((one) => batcher.submit(one)))
    await turn()
    const late = batcher.submit(6)
    await turn()
    assert.deepEqual(groups, [
      [1, 2],
      [3, 4],
    ])
    ends[1]?.answer()
    await turn()
    assert.deepEqual(groups[2], [5, 6])
    ends[0]?.answer()
    ends[2]?.answer()
    assert.deepEqual(await answers, ['1!', '2!', '3!', '4!', '5!'])
    assert.equal(await late, '6!')
  })

  test('splits a failing group until only the failing item is rejected', async () => {
    const groups: number[][] = []
    const batcher = new Batcher<number, string>(
      async (group) => {
        groups.push([...group])
        if (group.includes(2)) throw new Error('not 2')
        return group.map((one) => `${one}!`)
      },
      { atMost: 4 },
    )
    const answers = await Promise.allSettled([1, 2, 3, 4, 5].map((one) => batcher.submit(one)))
    assert.deepEqual(
      answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : answer.reason.message)),
      ['1!', 'not 2', '3!', '4!', '5!'],
    )
    assert.deepEqual(groups, [[1, 2, 3, 4], [1, 2], [3, 4], [1], [2], [5]])
  })

  test('rejects the whole group without a retry if the database is unreachable', async () => {
    const groups: number[][] = []
    const batcher = new Batcher<number, string>(async (group) => {
      groups.push([...group])
      throw unavailable(new Error('unreachable'))
    })
    const answers = await Promise.allSettled([1, 2, 3].map((one) => batcher.submit(one)))
    assert.deepEqual(
      answers.map(({ status }) => status),
      ['rejected', 'rejected', 'rejected'],
    )
    assert.deepEqual(groups, [[1, 2, 3]])
  })
})
