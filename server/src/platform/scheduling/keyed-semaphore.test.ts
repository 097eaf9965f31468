import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PosternError } from '../errors.ts'
import { KeyedSemaphore } from './keyed-semaphore.ts'

/** Tasks that end when the test calls `end`. */
function tasks(semaphore: KeyedSemaphore<string>) {
  const running: string[] = []
  const ends = new Map<string, () => void>()
  const start = (key: string, name: string) =>
    semaphore.run(key, () => {
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

describe('a keyed semaphore', () => {
  test("limits a key's running tasks, starts waiting ones in order, and does not block other keys", async () => {
    const { running, start, end } = tasks(new KeyedSemaphore({ atOnce: 2, waitingAtMost: 10 }))
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

  test('releases the slot when the task fails', async () => {
    const semaphore = new KeyedSemaphore<string>({ atOnce: 1, waitingAtMost: 10 })
    const failed = semaphore.run('a', () => Promise.reject(new Error('failed')))
    const next = semaphore.run('a', async () => 'done')
    await assert.rejects(failed, /failed/)
    assert.equal(await next, 'done')
  })

  test('rejects a key with too many waiting tasks, but no other key', async () => {
    const { start, end } = tasks(new KeyedSemaphore({ atOnce: 1, waitingAtMost: 1 }))
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
