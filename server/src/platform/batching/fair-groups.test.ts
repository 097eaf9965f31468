import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FairGroups, type GroupKind } from './fair-groups.ts'

/** Of a tenant, so much. */
type Asked = [tenant: number, size: number]

/** Answers when it is told to, and keeps the groups that it was asked. Up to 4 fit into a group; above that it is large. */
function slow(groupsAtOnce = 2) {
  const groups: Asked[][] = []
  const ends: (() => void)[] = []
  const fair = new FairGroups<Asked, string>(
    (group) =>
      new Promise((resolve) => {
        groups.push([...group])
        ends.push(() => resolve(group.map(([tenant]) => `${tenant}!`)))
      }),
    {
      groupsAtOnce,
      tenantOf: ([tenant]) => tenant,
      kindOf: ([, size]): GroupKind => (size > 4 ? 'large' : 'small'),
      newRoom() {
        let left = 4
        return ([, size]) => {
          left -= size
          return left >= 0
        }
      },
    },
  )
  const end = async (no: number) => {
    ends[no]?.()
    await turn()
  }
  return { fair, groups, end }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))
const askAll = (fair: FairGroups<Asked, string>, asked: Asked[]) =>
  Promise.all(asked.map((one) => fair.submit(one)))

describe('fair groups', () => {
  test('take one of each tenant in turn, and answer by place', async () => {
    const { fair, groups, end } = slow(1)
    const answers = askAll(fair, [
      [1, 1],
      [1, 1],
      [1, 1],
      [1, 1],
      [1, 1],
      [2, 1],
      [3, 1],
    ])
    await turn()
    assert.deepEqual(
      groups[0]?.map(([tenant]) => tenant),
      [1, 2, 3, 1],
    )
    await end(0)
    assert.deepEqual(
      groups[1]?.map(([tenant]) => tenant),
      [1, 1, 1],
    )
    await end(1)
    assert.deepEqual(await answers, ['1!', '1!', '1!', '1!', '1!', '2!', '3!'])
  })

  test('have a tenant in one of them at a time, of either kind', async () => {
    const { fair, groups, end } = slow()
    const answers = askAll(fair, [
      [1, 9],
      [1, 9],
      [1, 1],
      [2, 1],
    ])
    await turn()
    assert.deepEqual(groups, [
      [
        [1, 1],
        [2, 1],
      ],
    ])
    await end(0)
    assert.deepEqual(groups[1], [[1, 9]])
    const late = fair.submit([1, 1])
    await turn()
    assert.equal(groups.length, 2, 'its own small one waits for it')
    await end(1)
    assert.deepEqual(groups[2], [[1, 1]])
    await end(2)
    assert.deepEqual(groups[3], [[1, 9]])
    await end(3)
    assert.equal((await answers).length, 4)
    assert.equal(await late, '1!')
  })

  test('of small ones do not wait for large ones', async () => {
    const { fair, groups, end } = slow()
    const large = askAll(fair, [
      [1, 9],
      [2, 9],
      [3, 9],
    ])
    await turn()
    assert.equal(groups.length, 2)
    const small = fair.submit([4, 1])
    await turn()
    assert.deepEqual(groups[2], [[4, 1]])
    await end(2)
    assert.equal(await small, '4!')
    await end(0)
    assert.deepEqual(groups[3], [[3, 9]])
    await Promise.all([end(1), end(3)])
    assert.equal((await large).length, 3)
  })

  test('of a tenant with both kinds waiting are of each in turn', async () => {
    const { fair, groups, end } = slow()
    const small = askAll(
      fair,
      Array.from({ length: 12 }, () => [1, 1]),
    )
    const large = askAll(fair, [
      [1, 9],
      [1, 9],
    ])
    await turn()
    for (let no = 0; no < 5; no++) await end(no)
    assert.deepEqual(
      groups.map(([first]) => first?.[1]),
      [1, 9, 1, 9, 1],
    )
    assert.equal((await small).length + (await large).length, 14)
  })

  test('that fail are split until what makes them fail is alone', async () => {
    const fair = new FairGroups<Asked, string>(
      async (group) => {
        if (group.some(([tenant]) => tenant === 2)) throw new Error('not 2')
        return group.map(([tenant]) => `${tenant}!`)
      },
      { groupsAtOnce: 1, tenantOf: ([tenant]) => tenant, kindOf: () => 'small', newRoom: () => () => true },
    )
    const answers = await Promise.allSettled([1, 2, 3].map((tenant) => fair.submit([tenant, 1])))
    assert.deepEqual(
      answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : answer.reason.message)),
      ['1!', 'not 2', '3!'],
    )
  })
})
