import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FairGroups, type GroupKind } from './fair-groups.ts'

type Item = [tenant: number, size: number]

/** Groups finish when the test calls `end`. A group has capacity 4; larger items are `large`. */
function controlled(groupsAtOnce = 2) {
  const groups: Item[][] = []
  const ends: (() => void)[] = []
  const fair = new FairGroups<Item, string>(
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
const submitAll = (fair: FairGroups<Item, string>, items: Item[]) =>
  Promise.all(items.map((one) => fair.submit(one)))

describe('fair groups', () => {
  test('take one item per tenant in turn and return a result for each', async () => {
    const { fair, groups, end } = controlled(1)
    const answers = submitAll(fair, [
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

  test('contain a tenant only once at a time, regardless of the kind', async () => {
    const { fair, groups, end } = controlled()
    const answers = submitAll(fair, [
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
    assert.equal(groups.length, 2, 'the small item of the same tenant waits')
    await end(1)
    assert.deepEqual(groups[2], [[1, 1]])
    await end(2)
    assert.deepEqual(groups[3], [[1, 9]])
    await end(3)
    assert.equal((await answers).length, 4)
    assert.equal(await late, '1!')
  })

  test('of small items do not wait for large ones', async () => {
    const { fair, groups, end } = controlled()
    const large = submitAll(fair, [
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

  test('alternate between kinds for a tenant with both', async () => {
    const { fair, groups, end } = controlled()
    const small = submitAll(
      fair,
      Array.from({ length: 12 }, () => [1, 1]),
    )
    const large = submitAll(fair, [
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

  test('that fail are split until only the failing item is rejected', async () => {
    const fair = new FairGroups<Item, string>(
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
