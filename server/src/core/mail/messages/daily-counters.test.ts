import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { mailRows } from '../../../testing/fixtures/mail-rows.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { countDaily } from './daily-counters.ts'

const database = await testDatabase()
const db = openDatabase(database, { poolSize: 8 }).as('mail')
const { countsOf, outbox } = mailRows(database)

describe('counting by day', () => {
  test("adds up a project's counts within a call and across calls", async () => {
    await db.transaction((tx) =>
      countDaily(tx, [
        { projectId: 1, sent: 2 },
        { projectId: 2, delivered: 1, deferred: 1, suppressed: 3 },
        { projectId: 1, sent: 1, delivered: 1 },
      ]),
    )
    await db.transaction((tx) => countDaily(tx, [{ projectId: 1, sent: 4 }]))
    assert.deepEqual(await countsOf(1), { sent: 7, delivered: 1 })
    assert.deepEqual(await countsOf(2), { delivered: 1, deferred: 1, suppressed: 3 })
    assert.deepEqual([...(await outbox(1)), ...(await outbox(2))], [], 'control does not use these counts')
  })

  test('publishes one change per call per project to control', async () => {
    await db.transaction((tx) =>
      countDaily(tx, [
        { projectId: 3, bounced: 1 },
        { projectId: 3, complained: 1 },
        { projectId: 4, failed: 1 },
        { projectId: 5, sent: 1, bounced: 0 },
      ]),
    )
    assert.deepEqual(await outbox(3), [{ topic: 'project.stats_changed' }])
    assert.deepEqual(await outbox(4), [{ topic: 'project.stats_changed' }])
    assert.deepEqual(await outbox(5), [])
  })

  test('is exact and deadlock-free when transactions update the same projects in any order', async () => {
    const projects = [21, 22, 23, 24, 25]
    const retries = await deadlocks()
    await Promise.all(
      Array.from({ length: 100 }, (_, n) => {
        const order = n % 2 === 0 ? projects : projects.toReversed()
        return db.transaction((tx) =>
          countDaily(
            tx,
            order.map((projectId) => ({ projectId, sent: 1 })),
          ),
        )
      }),
    )
    for (const id of projects) assert.deepEqual(await countsOf(id), { sent: 100 })
    assert.equal((await deadlocks()) - retries, 0)
  })

  test('starts a new row with each UTC day', async () => {
    await db.transaction((tx) => countDaily(tx, [{ projectId: 31, sent: 1 }]))
    await database.query(
      `do $$ begin execute format('alter database %I set postern.clock_offset = ''1 day''', current_database()); end $$`,
    )
    const later = openDatabase(database).as('mail')
    await later.transaction((tx) => countDaily(tx, [{ projectId: 31, sent: 1 }]))
    const days = await database.query('select day, sent from mail.daily_counters where project_id = 31')
    assert.equal(days.length, 2)
  })
})

async function deadlocks(): Promise<number> {
  const [row] = await database.query<{ deadlocks: string }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  )
  return Number(row?.deadlocks)
}
