import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { openDatabase, type TestDatabase, testDatabase } from '../../testing/harness/database.ts'
import { eventually } from '../../testing/harness/waiting.ts'
import { createLogger } from '../telemetry/log.ts'
import { ReplicaAge, type ReplicaAgeOptions } from './replica-age.ts'

/** The database acts as a cell. The test writes the rows that replication would write. */
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
  const age = new ReplicaAge(db, { cell: 'a', maxAgeSeconds: 300, log, readEveryMs: 20, ...changes })
  cleanUp(async () => age.close())
  return { age, lines }
}

describe('the age of the control replica', () => {
  test('is unknown without a heartbeat, and the replica is stale', async () => {
    await database.query('delete from control.heartbeat')
    const { age, lines } = watch()
    assert.equal(await age.isStale(), true)
    assert.equal(age.seconds, undefined)
    await assert.rejects(age.requireFresh(), { code: 'unavailable', retryAfterSeconds: 30 })
    assert.equal(lines.filter((line) => line.includes('the replica of control is too old')).length, 1)
  })

  test('is the time since the heartbeat, and the replica is stale above the limit', async () => {
    await beat(database, '10 seconds')
    const { age, lines } = watch()
    assert.equal(await age.isStale(), false)
    assert.ok((age.seconds ?? 0) >= 10)
    await age.requireFresh()
    await beat(database, '301 seconds')
    await eventually('it is stale', () => age.isStaleNow)
    await assert.rejects(age.requireFresh(), { code: 'unavailable' })
    await beat(database, '0 seconds')
    await eventually('it is fresh', () => !age.isStaleNow)
    await age.requireFresh()
    await eventually('both changes are logged', () => lines.length === 2)
    assert.match(lines[0] ?? '', /too old/)
    assert.match(lines[1] ?? '', /up to date again/)
  })

  test('is read by the timer only, not by callers', async () => {
    await beat(database, '0 seconds')
    let reads = 0
    const counting = new Proxy(db, {
      get(target, name: keyof typeof db) {
        if (name === 'readOne') reads++
        return target[name].bind(target)
      },
    })
    const age = new ReplicaAge(counting, {
      ...{ cell: 'a', maxAgeSeconds: 300, log: createLogger('silent'), readEveryMs: 3_600_000 },
    })
    cleanUp(async () => age.close())
    assert.equal(reads, 0, 'no query before the first call')
    await Promise.all(Array.from({ length: 100 }, () => age.requireFresh()))
    assert.equal(reads, 1)
  })

  test('grows while the cell is unreachable', async () => {
    await beat(database, '0 seconds')
    const answers = [() => db]
    const failing = new Proxy(db, {
      get(target, name: keyof typeof db) {
        if (answers.length === 0) return () => Promise.reject(new Error('the cell is unreachable'))
        answers.pop()
        return target[name].bind(target)
      },
    })
    const age = new ReplicaAge(failing, {
      ...{ cell: 'a', maxAgeSeconds: 0.2, log: createLogger('silent'), readEveryMs: 20 },
    })
    cleanUp(async () => age.close())
    await age.isStale()
    await eventually('it is stale', () => age.isStaleNow)
  })

  test("is at least the time since the heartbeat was first read, regardless of the cell's clock", async () => {
    await beat(database, '-1 hour')
    const { age } = watch({ maxAgeSeconds: 0.2 })
    await age.isStale()
    await eventually('it is stale', () => age.isStaleNow)
    await beat(database, '-2 hours')
    await eventually('another heartbeat makes it fresh', () => !age.isStaleNow)
  })
})
