import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { shardOf } from '../../platform/db/cells.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { type Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { recordStatements } from '../../testing/harness/statements.ts'
import { startTwoCells } from '../../testing/harness/two-cells.ts'

const database = await testDatabase()
const { api, databaseOf, startWithout } = await startTwoCells(database)
const admin = await signedIn(api)
const { makeProject } = fixtures(database, admin)

const isInFirst = (id: number) => shardOf(id) < 512

/** New projects: the first is in the first cell, the second in the other one. */
async function makePair(): Promise<[number, number]> {
  const ids: number[] = []
  while (!(ids.some(isInFirst) && ids.some((id) => !isInFirst(id)))) ids.push((await makeProject()).id)
  return [ids.find(isInFirst) ?? assert.fail(), ids.find((id) => !isInFirst(id)) ?? assert.fail()]
}

const kinds = ['sent', 'delivered', 'bounced', 'failed', 'complained'] as const
type Counts = Partial<Record<(typeof kinds)[number], number>>

const countDay = (id: number, daysAgo: number, counts: Counts) =>
  databaseOf(shardOf(id)).query(
    `insert into mail.daily_counters (project_id, day, ${kinds.join(', ')})
     values ($1, (postern.now() at time zone 'UTC')::date - $2::int, $3, $4, $5, $6, $7)`,
    [id, daysAgo, ...kinds.map((kind) => counts[kind] ?? 0)],
  )

const countHour = (id: number, hoursAgo: number, sent: number, bounced: number, excluded: number) =>
  databaseOf(shardOf(id)).query(
    `insert into mail.sending_counters (project_id, bucket_at, sent, bounced, excluded_sent, excluded_bounced)
     values ($1, date_trunc('hour', postern.now(), 'UTC') - $2 * interval '1 hour', $3, $4, $5, $5)`,
    [id, hoursAgo, sent, bounced, excluded],
  )

async function volumes(ids: readonly number[], range?: string, client: Client = admin) {
  const query = `ids=${ids.join(',')}${range === undefined ? '' : `&range=${range}`}`
  const { status, body, text } = await client.get(`/projects/volumes?${query}`)
  assert.equal(status, 200, text)
  return body
}

const nothing = {
  ...{ sent: 0, delivered: 0, bounced: 0, failed: 0, complained: 0 },
  ...{ bounce_rate: null, complaint_rate: null },
}

describe('projects.volumes', () => {
  test('returns the last 30 days of projects in all cells, in the order of the ids', async () => {
    const [one, other] = await makePair()
    await countDay(one, 0, { sent: 6000, delivered: 5000, bounced: 100, failed: 3, complained: 1 })
    await countDay(one, 29, { sent: 4000, bounced: 100, complained: 9 })
    await countDay(one, 30, { sent: 7, bounced: 7 })
    await countDay(other, 3, { sent: 5_000_000_001 })
    const { id: idle } = await makeProject()
    assert.deepEqual(await volumes([other, idle, one]), {
      data: [
        { ...nothing, project_id: other, sent: 5_000_000_001, bounce_rate: 0, complaint_rate: 0 },
        { ...nothing, project_id: idle },
        {
          ...{ project_id: one, sent: 10_000, delivered: 5000, bounced: 200, failed: 3, complained: 10 },
          ...{ bounce_rate: 2, complaint_rate: 0.1 },
        },
      ],
      unreachable_cells: [],
    })
  })

  test('returns the last 7 days', async () => {
    const [one] = await makePair()
    await countDay(one, 6, { sent: 100, bounced: 1 })
    await countDay(one, 7, { sent: 100, bounced: 99 })
    const [row] = (await volumes([one], '7d')).data
    assert.deepEqual([row.sent, row.bounced, row.bounce_rate], [100, 1, 1])
  })

  test('returns the last 24 hours, including results that policies do not use', async () => {
    const [one] = await makePair()
    await countDay(one, 0, { sent: 9999 })
    await countHour(one, 0, 80, 3, 10)
    await countHour(one, 23, 110, 7, 0)
    await countHour(one, 24, 1000, 1000, 0)
    const [row] = (await volumes([one], '24h')).data
    assert.deepEqual([row.sent, row.bounced, row.bounce_rate], [200, 20, 10])
  })

  test('computes rates over the results if more recipients have one than were sent to', async () => {
    const [one] = await makePair()
    await countDay(one, 0, { sent: 10, bounced: 20, failed: 20 })
    const [row] = (await volumes([one])).data
    assert.deepEqual([row.sent, row.bounce_rate], [10, 50])
  })

  test('returns each project once, and omits projects that do not exist', async () => {
    const [one, other] = await makePair()
    const { data } = await volumes([one, 999_999_999, other, one])
    assert.deepEqual(
      data.map(({ project_id }: { project_id: number }) => project_id),
      [one, other],
    )
    assert.deepEqual(await volumes([999_999_999]), { data: [], unreachable_cells: [] })
  })

  test('names a cell that cannot be reached, and asks only the cells of the projects', async () => {
    const [one, other] = await makePair()
    const lessAdmin = await signedIn(await startWithout())
    const { data, unreachable_cells } = await volumes([one, other], '30d', lessAdmin)
    assert.deepEqual(data, [{ ...nothing, project_id: one }])
    assert.deepEqual(unreachable_cells, ['b'])
    assert.deepEqual((await volumes([one], '30d', lessAdmin)).unreachable_cells, [])
    assertProblem(await lessAdmin.get(`/projects/volumes?ids=${other}`), 503, 'unavailable')
  })

  test('sends the same statements for any number of projects', async (t) => {
    const pair = await makePair()
    const many = Array.from({ length: 198 }, (_none, index) => index + 1)
    const statements = recordStatements(t)
    const counts: number[] = []
    for (const ids of [pair, [...new Set([...pair, ...many])]]) {
      for (const range of ['24h', '7d', '30d']) {
        statements.reset()
        await volumes(ids, range)
        counts.push(statements.count)
      }
    }
    assert.equal(new Set(counts).size, 1, `${counts}`)
  })

  test('accepts up to 200 ids', async () => {
    const ids = Array.from({ length: 200 }, (_none, index) => 9_007_199_254_740_000 + index)
    assert.deepEqual((await volumes(ids)).data, [])
    for (const query of [
      '',
      'ids=',
      'ids=1,',
      'ids=1;2',
      'ids=1, 2',
      'ids=01',
      'ids=-1',
      'ids=1e3',
      'ids=9007199254740993',
      'ids=1&ids=2',
      'ids=1&range=1d',
      'ids=1&limit=5',
      `ids=${[...ids, 1]}`,
    ])
      assertProblem(await admin.get(`/projects/volumes?${query}`), 400, 'invalid_parameter')
  })
})
