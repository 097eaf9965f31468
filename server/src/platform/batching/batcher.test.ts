import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { unavailable } from '../db/failures.ts'
import { Batcher } from './batcher.ts'

/** Answers when it is told to, and keeps the groups that it was asked. */
function slow(options: { groupsAtOnce: number; most: number }) {
  const groups: number[][] = []
  const ends: { answer(): void }[] = []
  const together = new Batcher<number, string>(
    (group) =>
      new Promise((resolve) => {
        groups.push([...group])
        ends.push({ answer: () => resolve(group.map((one) => `${one}!`)) })
      }),
    { groupsAtOnce: options.groupsAtOnce, atMost: options.most },
  )
  return { together, groups, ends }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('what is asked together', () => {
  test('in one turn of the event loop is one group, and has its answers by place', async () => {
    const { together, groups, ends } = slow({ groupsAtOnce: 1, most: 10 })
    const answers = Promise.all([3, 1, 2].map((one) => together.submit(one)))
    await turn()
    assert.deepEqual(groups, [[3, 1, 2]])
    ends[0]?.answer()
    assert.deepEqual(await answers, ['3!', '1!', '2!'])
  })

  test('while as many groups as may be are under way waits, and goes into the next', async () => {
    const { together, groups, ends } = slow({ groupsAtOnce: 2, most: 2 })
    const answers = Promise.all([1, 2, 3, 4, 5].map((one) => together.submit(one)))
    await turn()
    const late = together.submit(6)
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

  test('that fails is split until what makes it fail is alone, and takes no other group with it', async () => {
    const groups: number[][] = []
    const together = new Batcher<number, string>(
      async (group) => {
        groups.push([...group])
        if (group.includes(2)) throw new Error('not 2')
        return group.map((one) => `${one}!`)
      },
      { atMost: 4 },
    )
    const answers = await Promise.allSettled([1, 2, 3, 4, 5].map((one) => together.submit(one)))
    assert.deepEqual(
      answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : answer.reason.message)),
      ['1!', 'not 2', '3!', '4!', '5!'],
    )
    assert.deepEqual(groups, [[1, 2, 3, 4], [1, 2], [1], [2], [3, 4], [5]])
  })

  test('of a database that is away fails as a whole, and is tried once', async () => {
    const groups: number[][] = []
    const together = new Batcher<number, string>(async (group) => {
      groups.push([...group])
      throw unavailable(new Error('gone'))
    })
    const answers = await Promise.allSettled([1, 2, 3].map((one) => together.submit(one)))
    assert.deepEqual(
      answers.map(({ status }) => status),
      ['rejected', 'rejected', 'rejected'],
    )
    assert.deepEqual(groups, [[1, 2, 3]])
  })
})
