import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { rowsReadBy, sumOfRows } from '../../../testing/harness/rows-read.ts'
import { sumIn, volumeRanges } from './volumes.ts'

describe('the volumes of a page of projects', () => {
  test('are read from the same number of rows for any number of other projects and of older days', async (t) => {
    const costs: { projects: number; range: string; rows: number }[] = []
    for (const [projects, days] of [
      [200, 31],
      [2_000, 62],
    ] as const) {
      const database = await testDatabase()
      await database.query(`
        insert into mail.daily_counters (project_id, day, sent)
        select id, (postern.now() at time zone 'UTC')::date - ago, 1
          from generate_series(1, ${projects}) as id, generate_series(0, ${days - 1}) as ago;
        insert into mail.sending_counters (project_id, bucket_at, sent)
        select id, bucket_at, 1 from generate_series(1, ${projects}) as id,
               -- From the oldest partition on, at least an hour more than what is read.
               generate_series(date_trunc('day', postern.now(), 'UTC') - interval '1 day', postern.now(), '1 hour') as bucket_at`)
      await database.query('vacuum analyze')
      const db = openDatabase(database, { poolSize: 1 }).as('admin')
      const ids = Array.from({ length: 50 }, (_none, index) => index + 1)
      for (const range of volumeRanges) {
        const read = () => db.read((tx) => sumIn(tx, ids, range))
        const found = await read()
        assert.deepEqual(
          found.map(({ sent }) => sent),
          Array(50).fill({ '24h': 24, '7d': 7, '30d': 30 }[range]),
        )
        costs.push({ projects, range, rows: sumOfRows(await rowsReadBy(database, [db], read)) })
      }
    }
    t.diagnostic(costs.map(({ projects, range, rows }) => `${range} of ${projects}: ${rows} rows`).join(', '))
    const [rows, more] = [200, 2_000].map((count) =>
      costs.filter(({ projects }) => projects === count).map((cost) => cost.rows),
    )
    assert.deepEqual(rows, [50 * 24, 50 * 7, 50 * 30])
    assert.deepEqual(more, rows)
  })
})
