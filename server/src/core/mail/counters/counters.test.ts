import assert from 'node:assert/strict'
import { randomUUIDv7 } from 'node:crypto'
import { describe, test } from 'node:test'
import { uuid7 } from '../../../platform/ids.ts'
import { mailRows } from '../../../testing/fixtures/mail-rows.ts'
import { insertProjects } from '../../../testing/fixtures/project-rows.ts'
import { databaseNow, openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { VirtualTime } from '../../../testing/harness/virtual-time.ts'
import { countSending, type SendingCount } from './counters.ts'

const database = await testDatabase()
const db = openDatabase(database, { poolSize: 8 }).as('mail')
const { countsOf, outbox } = mailRows(database)

const count = (counts: (Omit<SendingCount, 'messageId'> & { messageId?: string })[], mail = db) =>
  mail.transaction((tx) =>
    countSending(
      tx,
      counts.map((one) => ({ messageId: randomUUIDv7(), ...one })),
    ),
  )

/** The counters that are not zero, by the start of their five minutes. */
async function bucketsOf(projectId: number): Promise<Record<string, number>[]> {
  const rows = await database.query<Record<string, unknown>>(
    'select * from mail.sending_counters where project_id = $1 order by bucket_at',
    [projectId],
  )
  return rows.map(({ project_id: _id, shard: _shard, bucket_at: _at, ...counts }) =>
    Object.fromEntries(Object.entries(counts as Record<string, number>).filter(([, value]) => value > 0)),
  )
}

describe('counting by day and by five minutes', () => {
  test("adds up a project's counts within a call and across calls", async () => {
    await count([
      { projectId: 1, sent: 2 },
      { projectId: 2, delivered: 1, deferred: 1, suppressed: 3 },
      { projectId: 1, sent: 1, delivered: 1 },
    ])
    await count([{ projectId: 1, sent: 4 }])
    assert.deepEqual(await countsOf(1), { sent: 7, delivered: 1 })
    assert.deepEqual(await countsOf(2), { delivered: 1, deferred: 1, suppressed: 3 })
    assert.deepEqual([...(await outbox(1)), ...(await outbox(2))], [], 'control does not use these counts')
  })

  test('publishes one change per call per project to control', async () => {
    await count([
      { projectId: 3, bounced: 1 },
      { projectId: 3, complained: 1 },
      { projectId: 4, failed: 1 },
      { projectId: 5, sent: 1, bounced: 0 },
    ])
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
        return count(order.map((projectId) => ({ projectId, sent: 1 })))
      }),
    )
    for (const id of projects) assert.deepEqual(await countsOf(id), { sent: 100 })
    assert.equal((await deadlocks()) - retries, 0)
  })

  test('starts a new row with each UTC day and with each five minutes', async () => {
    const time = new VirtualTime(database)
    const noon = new Date(time.at)
    noon.setUTCHours(12, 0, 0, 0)
    await time.set(noon)
    for (const minutes of [0, 4, 1, 24 * 60]) {
      await time.pass(minutes)
      await count([{ projectId: 31, sent: 1 }], time.mail)
    }
    const days = await database.query('select day, sent from mail.daily_counters where project_id = 31')
    assert.equal(days.length, 2)
    assert.deepEqual(await bucketsOf(31), [{ sent: 2 }, { sent: 1 }, { sent: 1 }])
  })

  test('separates what policies do not use', async () => {
    // The other tests use ids of projects that do not exist.
    const projectId = (await insertProjects(database, 100)).at(-1) ?? 0
    await count([{ projectId, failed: 1, isExcluded: true }])
    const earlier = uuid7((await databaseNow(database)).getTime() - 60_000)
    await database.query(
      "insert into control.restriction_ends (project_id, ended_at) values ($1, postern.now() - interval '30 seconds')",
      [projectId],
    )
    await count([
      { projectId, bounced: 1, messageId: earlier },
      { projectId, delivered: 1 },
    ])
    const sums = Object.assign({}, ...(await bucketsOf(projectId)))
    assert.deepEqual(sums, { delivered: 1, excluded_failed: 1, excluded_bounced: 1 })
    assert.deepEqual(
      await countsOf(projectId),
      { delivered: 1, bounced: 1, failed: 1 },
      'the day has everything',
    )
    const [day] = await database.query<{ excluded: number }>(
      'select failed_by_operator::int as excluded from mail.daily_counters where project_id = $1',
      [projectId],
    )
    assert.equal(day?.excluded, 1, 'mail that was accepted earlier still lowers the score')
  })
})

async function deadlocks(): Promise<number> {
  const [row] = await database.query<{ deadlocks: string }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  )
  return Number(row?.deadlocks)
}
