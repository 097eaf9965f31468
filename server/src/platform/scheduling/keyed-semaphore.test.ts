import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PosternError } from '../errors.ts'
import { KeyedSemaphore } from './keyed-semaphore.ts'

/** Work that ends when the test says so. */
function pieces(shares: KeyedSemaphore<string>) {
  const running: string[] = []
  const ends = new Map<string, () => void>()
  const start = (key: string, name: string) =>
    shares.run(key, () => {
      running.push(name)
      return new Promise<string>((resolve) =>
        ends.set(name, () => {
          running.splice(running.indexOf(name), 1)
          resolve(name)
        }),
      )
    })
  return { running, start, end: (name: string) => ends.get(name)?.() }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('shares', () => {
  test('lets so many of a key run at once, the others in their order, and other keys beside them', async () => {
    const { running, start, end } = pieces(new KeyedSemaphore({ atOnce: 2, waitingAtMost: 10 }))
    const all = [start('a', 'a1'), start('a', 'a2'), start('a', 'a3'), start('a', 'a4'), start('b', 'b1')]
    assert.deepEqual(running, ['a1', 'a2', 'b1'])
    end('a2')
    await turn()
    assert.deepEqual(running, ['a1', 'b1', 'a3'])
    for (const name of ['a1', 'a3', 'b1']) end(name)
    await turn()
    assert.deepEqual(running, ['a4'])
    end('a4')
    assert.deepEqual(await Promise.all(all), ['a1', 'a2', 'a3', 'a4', 'b1'])
  })

  test('gives the share back when the work fails', async () => {
    const shares = new KeyedSemaphore<string>({ atOnce: 1, waitingAtMost: 10 })
    const failed = shares.run('a', () => Promise.reject(new Error('failed')))
    const next = shares.run('a', async () => 'done')
    await assert.rejects(failed, /failed/)
    assert.equal(await next, 'done')
  })

  test('refuses a key for which enough wait, and no other key', async () => {
    const { start, end } = pieces(new KeyedSemaphore({ atOnce: 1, waitingAtMost: 1 }))
    const first = start('a', 'a1')
    const second = start('a', 'a2')
    await assert.rejects(
      start('a', 'a3'),
      (error) => error instanceof PosternError && error.code === 'rate_limited',
    )
    const other = start('b', 'b1')
    end('b1')
    end('a1')
    await first
    await turn()
    end('a2')
    await Promise.all([second, other])
  })
})
