import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { SMTPServerDataStream } from 'smtp-server'
import { eventually } from '../../testing/harness/waiting.ts'
import { Budget, BufferedMail, withBufferedMail } from './mail-buffer.ts'

/** How much memory mail takes while it comes in. */
const MiB = 1024 * 1024
setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

const inUse = (): number => {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const streamOf = (pieces: AsyncIterable<Buffer>) => Readable.from(pieces) as unknown as SMTPServerDataStream

describe('a mail that comes in', () => {
  test('takes up little more than it has, in however many pieces it comes', (t) => {
    // As the library hands on the lines that begin with a dot: one by one.
    const line = Buffer.from('\r\n.')
    const lines = Math.floor((2 * MiB) / line.length)
    const before = inUse()
    const gathered = new BufferedMail(new Budget(16 * MiB), 'a')
    for (let n = 0; n < lines; n++) assert.ok(gathered.add(Buffer.from(line)))
    const more = inUse() - before
    t.diagnostic(`${(more / MiB).toFixed(2)} MiB for ${lines} pieces`)
    assert.equal(gathered.whole().length, lines * line.length)
    // Piece by piece it would be some 70. What the engine compiles and keeps meanwhile is in it, too.
    assert.ok(more < 6 * MiB)
  })

  test('counts as what it takes up, and is given back', async () => {
    const budget = new Budget(8 * 64 * 1024)
    async function* pieces() {
      yield Buffer.from('a')
      await eventually('it counts', () => !budget.has(64 * 1024 + 1, 'a'))
      assert.ok(budget.has(64 * 1024, 'a'))
    }
    const whole = await withBufferedMail(streamOf(pieces()), { budget, holders: ['a'] }, async (raw) => {
      assert.ok(!budget.has(64 * 1024 + 1, 'a'), 'until it is done with')
      return raw.toString()
    })
    assert.equal(whole, 'a')
    assert.ok(budget.has(2 * 64 * 1024, 'a'))
  })
})

describe('a budget', () => {
  test('has a quarter for everybody, while it lasts', () => {
    const budget = new Budget(100)
    assert.ok(!budget.take(26, 'a'))
    for (const whose of ['a', 'b', 'c']) {
      assert.ok(budget.take(25, whose))
      assert.ok(!budget.take(1, whose))
    }
    assert.ok(budget.take(20, 'd'))
    assert.ok(budget.take(5, 'e') && !budget.take(1, 'e'))
    budget.giveBack(25, 'a')
    assert.ok(budget.take(20, 'e') && budget.take(5, 'a') && !budget.take(1, 'd'))
  })
})

describe('a mail that stops in the middle', () => {
  const block = 64 * 1024
  /** Four blocks for each holder. */
  const budgetAt = (clock: { now: number }) => new Budget(16 * block, () => clock.now)
  const hold = (budget: Budget, blocks: number, ...holders: string[]) => {
    const mail = new BufferedMail(budget, ...holders)
    assert.ok(mail.add(Buffer.alloc(blocks * block)))
    return mail
  }

  test('keeps no other network from its addressee for longer than ten seconds', () => {
    const clock = { now: 0 }
    const budget = budgetAt(clock)
    const [first, second] = [hold(budget, 2, 'stranger', 'shop'), hold(budget, 2, 'stranger', 'shop')]
    const invoice = () => new BufferedMail(budget, 'customer', 'shop').add(Buffer.from('x'))
    assert.ok(!invoice(), 'the share of the shop is used up')
    clock.now = 10_000
    assert.ok(invoice())
    assert.deepEqual(
      [first.isEvicted, second.isEvicted],
      [true, false],
      'the oldest, and no more than needed',
    )
    assert.ok(!first.add(Buffer.from('x')) && second.add(Buffer.alloc(0)))
    assert.ok(!hold(budget, 1, 'stranger', 'other').isEvicted, 'what it held is given back')
  })

  test('keeps nobody out when a few networks together hold everything', () => {
    const clock = { now: 0 }
    const budget = budgetAt(clock)
    const held = [1, 2, 3, 4].map((no) => hold(budget, 4, `stranger ${no}`, `project ${no}`))
    assert.ok(!budget.makeRoom(1, 'customer'))
    clock.now = 10_000
    assert.ok(budget.makeRoom(1, 'customer'))
    assert.deepEqual(
      held.map(({ isEvicted }) => isEvicted),
      [true, false, false, false],
    )
  })

  test('is not evicted for mail of the same network, nor once it has come', () => {
    const clock = { now: 0 }
    const budget = budgetAt(clock)
    const own = hold(budget, 4, 'stranger', 'shop')
    clock.now = 10_000
    assert.ok(!budget.makeRoom(1, 'stranger', 'other') && !own.isEvicted)
    own.whole()
    assert.ok(!budget.makeRoom(1, 'customer', 'shop') && !own.isEvicted)
    own.drop()
    assert.ok(budget.makeRoom(1, 'customer', 'shop'))
  })

  test('is refused at its end', async () => {
    const clock = { now: 0 }
    const budget = budgetAt(clock)
    async function* pieces() {
      yield Buffer.alloc(4 * block)
      await eventually('it counts', () => !budget.has(1, 'shop'))
      clock.now = 10_000
      assert.ok(budget.makeRoom(1, 'customer', 'shop'))
    }
    const mail = withBufferedMail(
      streamOf(pieces()),
      { budget, holders: ['stranger', 'shop'] },
      async () => 'taken',
    )
    await assert.rejects(mail, /4\.3\.1/)
    assert.ok(budget.has(4 * block, 'stranger') && budget.has(16 * block - 12 * block, 'shop'))
  })
})
