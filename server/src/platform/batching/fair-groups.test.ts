import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventually } from '../../testing/harness/waiting.ts'
import { FairGroups, type GroupKind } from './fair-groups.ts'

type Item = [tenant: number, size: number]

/** Groups finish when the test calls `end`. A group has capacity 4; larger items are `large`. */
function controlled(
  groupsAtOnce = 2,
  options: { overlapMs?: number; gatherMs?: number; gatherItems?: number } = {},
) {
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
      ...options,
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
  test('start while another group is running only after the overlap time', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { fair, groups, end } = controlled(2, { overlapMs: 3_600_000 })
    const answers = submitAll(fair, [[1, 1]])
    await turn()
    const later = submitAll(fair, [
      [2, 1],
      [3, 1],
    ])
    await turn()
    assert.equal(groups.length, 1, 'the second group waits')
    await end(0)
    assert.deepEqual(groups[1], [
      [2, 1],
      [3, 1],
    ])
    await end(1)
    assert.deepEqual([await answers, await later], [['1!'], ['2!', '3!']])
  })

  test('do not wait for a group that takes longer than the overlap time', async () => {
    const { fair, groups, end } = controlled(2, { overlapMs: 1 })
    const blocked = submitAll(fair, [[1, 1]])
    await turn()
    const other = submitAll(fair, [[2, 1]])
    await eventually('a second group', () => groups.length === 2)
    await end(1)
    assert.deepEqual(await other, ['2!'])
    await end(0)
    assert.deepEqual(await blocked, ['1!'])
  })

  test('settle the items of a part before the part that fails, and serve their tenants', async () => {
    const blocked = Promise.withResolvers<void>()
    const groups: number[][] = []
    const fair = new FairGroups<Item, string>(
      async (group) => {
        const tenants = group.map(([tenant]) => tenant)
        groups.push(tenants)
        if (tenants.includes(4) && tenants.length > 1) throw new Error('planted')
        if (tenants.includes(4)) await blocked.promise
        return tenants.map((tenant) => `${tenant}!`)
      },
      {
        ...{ groupsAtOnce: 2, tenantOf: ([tenant]) => tenant, kindOf: () => 'small' },
        newRoom: () => () => true,
      },
    )
    const [one, two, three, four] = [1, 2, 3, 4].map((tenant) => fair.submit([tenant, 1]))
    assert.deepEqual(await Promise.all([one, two, three]), ['1!', '2!', '3!'], 'while the fourth waits')
    assert.equal(await fair.submit([1, 1]), '1!')
    blocked.resolve()
    assert.equal(await four, '4!')
    assert.deepEqual(groups[0], [1, 2, 3, 4])
  })

  test('gather items before each group', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { fair, groups, end } = controlled(1, { gatherMs: 5 })
    const first = submitAll(fair, [[1, 1]])
    await turn()
    assert.equal(groups.length, 0)
    const second = submitAll(fair, [[2, 1]])
    t.mock.timers.tick(5)
    assert.deepEqual(groups[0], [
      [1, 1],
      [2, 1],
    ])
    await end(0)
    assert.deepEqual([await first, await second], [['1!'], ['2!']])
  })

  test('stop gathering as soon as enough items are waiting', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { fair, groups, end } = controlled(1, { gatherMs: 3_600_000, gatherItems: 2 })
    const answers = submitAll(fair, [
      [1, 1],
      [2, 1],
    ])
    await turn()
    assert.equal(groups.length, 1)
    const more = submitAll(fair, [
      [3, 1],
      [4, 1],
    ])
    await end(0)
    assert.equal(groups.length, 2, 'the next group also starts immediately')
    await end(1)
    assert.deepEqual(
      [await answers, await more],
      [
        ['1!', '2!'],
        ['3!', '4!'],
      ],
    )
  })

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
