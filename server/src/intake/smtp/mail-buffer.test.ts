import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { SMTPServerDataStream } from 'smtp-server'
import { eventually } from '../../testing/harness/waiting.ts'
import { BufferBudget, BufferedMail, withBufferedMail } from './mail-buffer.ts'

// Memory usage of mail while it is being received.

const MiB = 1024 * 1024
setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

const inUse = (): number => {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const streamOf = (pieces: AsyncIterable<Buffer>) => Readable.from(pieces) as unknown as SMTPServerDataStream

describe('a message that is being received', () => {
  test('uses little more memory than its size, regardless of the number of chunks', (t) => {
    // The library emits lines that begin with a dot individually.
    const line = Buffer.from('\r\n.')
    const lines = Math.floor((2 * MiB) / line.length)
    const before = inUse()
    const mail = new BufferedMail(new BufferBudget(16 * MiB), 'a')
    for (let n = 0; n < lines; n++) assert.ok(mail.add(Buffer.from(line)))
    const more = inUse() - before
    t.diagnostic(`${(more / MiB).toFixed(2)} MiB for ${lines} pieces`)
    assert.equal(mail.concat().length, lines * line.length)
    // Stored as separate chunks, the message would take about 70 MiB. The limit allows for code that the
    // engine compiles in the meantime.
    assert.ok(more < 6 * MiB)
  })

  test('is charged in whole blocks until it is released', async () => {
    const budget = new BufferBudget(8 * 64 * 1024)
    async function* pieces() {
      yield Buffer.from('a')
      await eventually('the message is charged', () => !budget.hasRoom(64 * 1024 + 1, 'a'))
      assert.ok(budget.hasRoom(64 * 1024, 'a'))
    }
    const whole = await withBufferedMail(streamOf(pieces()), { budget, owners: ['a'] }, async (raw) => {
      assert.ok(!budget.hasRoom(64 * 1024 + 1, 'a'), 'charged until `use` resolves')
      return raw.toString()
    })
    assert.equal(whole, 'a')
    assert.ok(budget.hasRoom(2 * 64 * 1024, 'a'))
  })
})

describe('a budget', () => {
  test('allows each owner at most a quarter', () => {
    const budget = new BufferBudget(100)
    assert.ok(!budget.reserve(26, 'a'))
    for (const owner of ['a', 'b', 'c']) {
      assert.ok(budget.reserve(25, owner))
      assert.ok(!budget.reserve(1, owner))
    }
    assert.ok(budget.reserve(20, 'd'))
    assert.ok(budget.reserve(5, 'e') && !budget.reserve(1, 'e'))
    budget.release(25, 'a')
    assert.ok(budget.reserve(20, 'e') && budget.reserve(5, 'a') && !budget.reserve(1, 'd'))
  })
})

describe('a message that stalls', () => {
  const block = 64 * 1024
  /** Four blocks per owner. */
  const budgetAt = (clock: { now: number }) => new BufferBudget(16 * block, () => clock.now)
  const hold = (budget: BufferBudget, blocks: number, ...owners: string[]) => {
    const mail = new BufferedMail(budget, ...owners)
    assert.ok(mail.add(Buffer.alloc(blocks * block)))
    return mail
  }

  test('blocks other networks from reaching its recipient for at most ten seconds', () => {
    const clock = { now: 0 }
    const budget = budgetAt(clock)
    const [first, second] = [hold(budget, 2, 'stranger', 'shop'), hold(budget, 2, 'stranger', 'shop')]
    const invoice = () => new BufferedMail(budget, 'customer', 'shop').add(Buffer.from('x'))
    assert.ok(!invoice(), 'the share of the recipient is used up')
    clock.now = 10_000
    assert.ok(invoice())
    assert.deepEqual(
      [first.isEvicted, second.isEvicted],
      [true, false],
      'only as many of the oldest as needed',
    )
    assert.ok(!first.add(Buffer.from('x')) && second.add(Buffer.alloc(0)))
    assert.ok(!hold(budget, 1, 'stranger', 'other').isEvicted, 'its memory was released')
  })

  test('is evicted when a few networks together use the whole budget', () => {
    const clock = { now: 0 }
    const budget = budgetAt(clock)
    const buffered = [1, 2, 3, 4].map((no) => hold(budget, 4, `stranger ${no}`, `project ${no}`))
    assert.ok(!budget.makeRoom(1, 'customer'))
    clock.now = 10_000
    assert.ok(budget.makeRoom(1, 'customer'))
    assert.deepEqual(
      buffered.map(({ isEvicted }) => isEvicted),
      [true, false, false, false],
    )
  })

  test('is not evicted for mail from the same network or after it is complete', () => {
    const clock = { now: 0 }
    const budget = budgetAt(clock)
    const own = hold(budget, 4, 'stranger', 'shop')
    clock.now = 10_000
    assert.ok(!budget.makeRoom(1, 'stranger', 'other') && !own.isEvicted)
    own.concat()
    assert.ok(!budget.makeRoom(1, 'customer', 'shop') && !own.isEvicted)
    own.drop()
    assert.ok(budget.makeRoom(1, 'customer', 'shop'))
  })

  test('is rejected at the end of its data', async () => {
    const clock = { now: 0 }
    const budget = budgetAt(clock)
    async function* pieces() {
      yield Buffer.alloc(4 * block)
      await eventually('the message is charged', () => !budget.hasRoom(1, 'shop'))
      clock.now = 10_000
      assert.ok(budget.makeRoom(1, 'customer', 'shop'))
    }
    const mail = withBufferedMail(
      streamOf(pieces()),
      { budget, owners: ['stranger', 'shop'] },
      async () => 'taken',
    )
    await assert.rejects(mail, /4\.3\.1/)
    assert.ok(budget.hasRoom(4 * block, 'stranger') && budget.hasRoom(16 * block - 12 * block, 'shop'))
  })
})
