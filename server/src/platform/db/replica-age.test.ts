import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { openDatabase, type TestDatabase, testDatabase } from '../../testing/harness/database.ts'
import { eventually } from '../../testing/harness/waiting.ts'
import { createLogger } from '../telemetry/log.ts'
import { ReplicaAge, type ReplicaAgeOptions } from './replica-age.ts'

/** One database stands for a cell: what replication would bring is written by the test. */
const database = await testDatabase()
const db = openDatabase(database).as('mail')

const beat = ({ query }: TestDatabase, ago: string) =>
  query(
    `insert into control.heartbeat (at) values (postern.now() - $1::interval)
     on conflict (id) do update set at = excluded.at`,
    [ago],
  )

function watch(changes: Partial<ReplicaAgeOptions> = {}) {
  const lines: string[] = []
  const log = createLogger('info', { write: (line) => void lines.push(line) })
  const copy = new ReplicaAge(db, { cell: 'a', maxAgeSeconds: 300, log, readEveryMs: 20, ...changes })
  cleanUp(async () => copy.close())
  return { copy, lines }
}

describe('the age of a copy of control', () => {
  test('is not known, and the copy is stale, where no heartbeat has come', async () => {
    await database.query('delete from control.heartbeat')
    const { copy, lines } = watch()
    assert.equal(await copy.isStale(), true)
    assert.equal(copy.seconds, undefined)
    await assert.rejects(copy.requireFresh(), { code: 'unavailable', retryAfterSeconds: 30 })
    assert.equal(lines.filter((line) => line.includes('the replica of control is too old')).length, 1)
  })

  test('is the time since the heartbeat, and at the limit the copy becomes stale until the next one', async () => {
    await beat(database, '10 seconds')
    const { copy, lines } = watch()
    assert.equal(await copy.isStale(), false)
    assert.ok((copy.seconds ?? 0) >= 10)
    await copy.requireFresh()
    await beat(database, '301 seconds')
    await eventually('it is stale', () => copy.isStaleNow)
    await assert.rejects(copy.requireFresh(), { code: 'unavailable' })
    await beat(database, '0 seconds')
    await eventually('it is fresh', () => !copy.isStaleNow)
    await copy.requireFresh()
    await eventually('both changes are logged', () => lines.length === 2)
    assert.match(lines[0] ?? '', /too old/)
    assert.match(lines[1] ?? '', /up to date again/)
  })

  test('is asked of the database by the timer, and not by those who want to know', async () => {
    await beat(database, '0 seconds')
    let reads = 0
    const counting = new Proxy(db, {
      get(target, name: keyof typeof db) {
        if (name === 'readOne') reads++
        return target[name].bind(target)
      },
    })
    const copy = new ReplicaAge(counting, {
      ...{ cell: 'a', maxAgeSeconds: 300, log: createLogger('silent'), readEveryMs: 3_600_000 },
    })
    cleanUp(async () => copy.close())
    assert.equal(reads, 0, 'nobody has asked yet')
    await Promise.all(Array.from({ length: 100 }, () => copy.requireFresh()))
    assert.equal(reads, 1)
  })

  test('grows while the cell does not answer', async () => {
    await beat(database, '0 seconds')
    const answers = [() => db]
    const failing = new Proxy(db, {
      get(target, name: keyof typeof db) {
        if (answers.length === 0) return () => Promise.reject(new Error('the cell is away'))
        answers.pop()
        return target[name].bind(target)
      },
    })
    const copy = new ReplicaAge(failing, {
      ...{ cell: 'a', maxAgeSeconds: 0.2, log: createLogger('silent'), readEveryMs: 20 },
    })
    cleanUp(async () => copy.close())
    await copy.isStale()
    await eventually('it is stale', () => copy.isStaleNow)
  })

  test("is no less than the time for which the same heartbeat was seen, wherever the cell's clock is", async () => {
    await beat(database, '-1 hour')
    const { copy } = watch({ maxAgeSeconds: 0.2 })
    await copy.isStale()
    await eventually('it is stale', () => copy.isStaleNow)
    await beat(database, '-2 hours')
    await eventually('another heartbeat makes it fresh', () => !copy.isStaleNow)
  })
})
