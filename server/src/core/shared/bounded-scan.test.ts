import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import type { ReadTx } from '../../platform/db/db.ts'
import { insertPlans } from '../../testing/fixtures/plan-rows.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'
import { containsPattern, hasTrigram } from './bounded-scan.ts'

const database = await testDatabase()
const db = openDatabase(database).as('admin')
const projects = 100

interface Scan {
  'Actual Rows': number
  Plans?: Scan[]
}

/**
 * The number of rows that the trigram index returns for a text that no name contains. If the text has no trigram, the index
 * returns all rows.
 */
async function given(tx: ReadTx, q: string): Promise<number> {
  const { rows } = await sql<{ 'QUERY PLAN': [{ Plan: Scan }] }>`
    explain (analyze, format json) select from control.projects where lower(name) like ${containsPattern(q)}`.execute(
    tx,
  )
  const index = rows[0]?.['QUERY PLAN'][0].Plan.Plans?.[0]
  return index?.['Actual Rows'] ?? assert.fail(`no index was used for "${q}"`)
}

test('a trigram index is used only for texts with a trigram', async () => {
  await database.query(`
    insert into control.users (email, name) values ('owner@example.com', 'Olive');
    ${insertPlans()};
    insert into control.projects (user_id, name, plan_id) select 1, 'Any ' || n, 1 from generate_series(1, ${projects}) as n`)
  await db.read(async (tx) => {
    await sql`set local enable_seqscan = off; set local enable_indexscan = off`.execute(tx)
    for (const q of ['qux', '-q', 'qx-', 'a-b', 'Жук', '京都市', 'x@y', '  q', '%q', 'été', 'q_x', 'q7.']) {
      assert.deepEqual([hasTrigram(q), await given(tx, q)], [true, 0], q)
    }
    for (const q of [
      '---',
      '€€€',
      '%%%',
      '___',
      'q',
      'qx',
      'q-',
      '- -',
      '\\\\\\',
      '🦊🦊🦊',
      'q -',
      'z.',
      '½½½',
    ]) {
      assert.deepEqual([hasTrigram(q), await given(tx, q)], [false, projects], q)
    }
  })
})
