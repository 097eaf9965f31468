import assert from 'node:assert/strict'
import { it } from 'node:test'
import { clockProperties, findComparisons, readSource } from './comparisons.ts'

const linesOf = (text: string, ...others: string[]): number[] => {
  const sources = [text, ...others].map(readSource)
  const [first] = sources
  assert.ok(first)
  return findComparisons(first, clockProperties(sources)).map(({ line }) => line)
}

it('finds the difference between two readings, and reports its line', () => {
  const source = `const start = performance.now()
await work()
assert.ok(performance.now() - start < 100)`
  assert.deepEqual(linesOf(source), [3])
})

it('finds a deadline', () => {
  assert.deepEqual(linesOf('const end = Date.now() + 5_000\nwhile (Date.now() < end) await work()'), [2])
})

it('finds readings returned by a function in the same file', () => {
  assert.deepEqual(
    linesOf('const now = () => performance.now()\nconst a = now()\nassert.ok(now() - a < 9)'),
    [3],
  )
  assert.deepEqual(
    linesOf('const a = now()\nassert.ok(now() > a)\nfunction now() { return Date.now() }'),
    [2],
  )
})

it('finds readings that another file stores in a property', () => {
  const source = 'assert.ok(Math.abs(second.receivedAtMs - first.receivedAtMs) < 50)'
  assert.deepEqual(linesOf(source), [])
  assert.deepEqual(linesOf(source, 'received.push({ receivedAtMs: Date.now() })'), [1])
})

it('finds a reading subtracted from any other point in time', () => {
  assert.deepEqual(linesOf('assert.ok(Math.abs(Date.parse(answer.created_at) - Date.now()) < 60_000)'), [1])
})

it('finds CPU time between two readings', () => {
  assert.deepEqual(linesOf('const { user } = process.cpuUsage(before)'), [1])
})

it('allows a reading that is only used as input', () => {
  assert.deepEqual(linesOf('const soon = new Date(Date.now() + 60_000).toISOString()'), [])
  assert.deepEqual(linesOf('const past = (ms: number) => new Date(Date.now() - ms).toISOString()'), [])
  assert.deepEqual(linesOf('const seed = Date.now() % 1_000\nassert.ok(count < 5)'), [])
})
