import assert from 'node:assert/strict'
import { randomUUIDv7 } from 'node:crypto'
import { beforeEach, describe, test } from 'node:test'
import { testDatabase } from '../../../testing/harness/database.ts'
import { VirtualTime } from '../../../testing/harness/virtual-time.ts'
import { countSending, type SendingCount } from './counters.ts'
import { foldTotals, listHourTotals } from './totals.ts'

const database = await testDatabase()
const time = new VirtualTime(database)

const count = (counts: Omit<SendingCount, 'messageId'>[]) =>
  time.mail.transaction((tx) =>
    countSending(
      tx,
      counts.map((one) => ({ ...one, messageId: randomUUIDv7() })),
    ),
  )

const totals = () =>
  database.query<{ bucket_at: Date; sent: number; bounced: number; failed: number }>(
    'select bucket_at, sent::int, bounced::int, failed::int from mail.sending_totals order by bucket_at',
  )
const sentOf = async () => (await totals()).filter(({ sent }) => sent > 0).map(({ sent }) => sent)

beforeEach(async () => {
  await database.query('truncate mail.sending_counters, mail.sending_totals')
  await time.pass(60)
  await time.set(new Date(Math.ceil(time.at.getTime() / 300_000) * 300_000))
})

describe('totals of sent mail', () => {
  test('add up the projects of a bucket, including what policies do not use', async () => {
    await count([
      { projectId: 1, sent: 5, bounced: 2 },
      { projectId: 2, sent: 3 },
      { projectId: 3, failed: 1, isExcluded: true },
    ])
    await time.pass(6.1)
    await foldTotals(time.mail)
    assert.deepEqual((await totals()).at(-1), {
      bucket_at: new Date(time.at.getTime() - 6.1 * 60_000),
      sent: 8,
      bounced: 2,
      failed: 1,
    })
  })

  test('wait for a minute after the end of a bucket', async () => {
    await count([{ projectId: 1, sent: 5 }])
    await time.pass(5.9)
    await foldTotals(time.mail)
    assert.deepEqual(await sentOf(), [])
    await time.pass(0.2)
    await foldTotals(time.mail)
    assert.deepEqual(await sentOf(), [5])
  })

  test('count each bucket once, however many workers do it', async () => {
    const other = new VirtualTime(database)
    for (let bucket = 1; bucket <= 4; bucket++) {
      await count([{ projectId: 1, sent: bucket }])
      await time.pass(5)
    }
    await time.pass(1.1)
    await other.set(time.at)
    await Promise.all([foldTotals(time.mail), foldTotals(other.mail)])
    await Promise.all([foldTotals(time.mail), foldTotals(other.mail)])
    assert.deepEqual(await sentOf(), [1, 2, 3, 4])
  })

  test('catch up at most 24 hours after an interruption, without gaps', async () => {
    await time.pass(1.1)
    await foldTotals(time.mail)
    await time.pass(3.9)
    await count([{ projectId: 1, sent: 1 }])
    await time.pass(20 * 60)
    await count([{ projectId: 1, sent: 2 }])
    await time.pass(6.1)
    await foldTotals(time.mail)
    assert.deepEqual(await sentOf(), [1, 2])
    const rows = await totals()
    const gaps = rows.filter(
      ({ bucket_at }, index) =>
        index > 0 && bucket_at.getTime() - (rows[index - 1]?.bucket_at.getTime() ?? 0) !== 300_000,
    )
    assert.deepEqual(gaps, [])
    await time.pass(50 * 60)
    await foldTotals(time.mail)
    assert.equal((await totals()).length, rows.length + 288)
  })

  test('are deleted after 90 days, and shown by hour for 24 hours', async () => {
    await database.query(
      `insert into mail.sending_totals values ($1::timestamptz - interval '91 days', 1, 1, 1, 1, 1, 1, 1, 1)`,
      [time.at],
    )
    await count([{ projectId: 1, sent: 7, delivered: 6 }])
    await time.pass(5)
    await count([{ projectId: 1, sent: 1 }])
    await time.pass(6.1)
    await foldTotals(time.mail)
    const [oldest] = await totals()
    assert.ok((oldest?.bucket_at.getTime() ?? 0) > time.at.getTime() - 25 * 3_600_000)
    const hours = await time.mail.read(listHourTotals)
    assert.ok(hours.length <= 24)
    assert.equal(
      hours.reduce((sum, { sent }) => sum + sent, 0),
      8,
    )
    const until = new Date(time.at.getTime() - 1.1 * 60_000)
    assert.deepEqual(hours.at(-1)?.counted_until, until)
  })
})
