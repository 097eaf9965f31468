import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CpuBudget } from './cpu-budget.ts'

test('each network and each addressee has a CPU budget that drains within a minute', () => {
  let now = 0
  const budget = new CpuBudget({ perNetworkMs: 100, perAddresseeMs: 200, quietMs: 0 }, () => now)
  budget.charge({ network: 'a', addressee: 'x' }, 100)
  assert.ok(budget.isSpent({ network: 'a', addressee: 'y' }, 'small'))
  assert.ok(!budget.isSpent({ network: 'b', addressee: 'x' }, 'small'))
  assert.ok(!budget.isSpent({ network: 'a', addressee: 'x', isUnlimited: true }, 'small'))
  now += 1
  assert.ok(!budget.isSpent({ network: 'a' }, 'small'), 'part of the bucket has drained')
  budget.charge({ network: 'a', addressee: 'x' }, 200)
  now += 59_000
  assert.ok(budget.isSpent({ network: 'a' }, 'small'), 'usage above the budget must drain too')
  now += 62_000
  assert.ok(!budget.isSpent({ network: 'a' }, 'small'))
  budget.charge({ network: 'c', addressee: 'x', isUnlimited: true }, 1_000)
  assert.ok(!budget.isSpent({ network: 'c', addressee: 'x' }, 'small'))
})

test('a flooded addressee still receives small messages from quiet networks', () => {
  let now = 0
  const budget = new CpuBudget({ perNetworkMs: 100, perAddresseeMs: 200, quietMs: 10 }, () => now)
  for (const network of ['a', 'b', 'c']) budget.charge({ network, addressee: 'x' }, 99)
  const isSpent = (network: string, job: 'small' | 'any') => budget.isSpent({ network, addressee: 'x' }, job)
  assert.deepEqual(
    [isSpent('a', 'small'), isSpent('quiet', 'small'), isSpent('quiet', 'any')],
    [true, false, true],
  )
  budget.charge({ network: 'quiet', addressee: 'x' }, 10)
  assert.ok(isSpent('quiet', 'small'), 'the network is no longer quiet')
  assert.ok(budget.isSpent({ addressee: 'x' }, 'small'), 'an unknown network is not quiet')
  now += 60_000
  assert.ok(!isSpent('quiet', 'any'))
})
