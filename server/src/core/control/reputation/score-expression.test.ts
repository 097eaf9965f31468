import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'
import { scoreOf, type WeekOfMail } from './score.ts'
import { scoreSql } from './score-expression.ts'

const database = await testDatabase()
const db = openDatabase(database).as('admin')

test('the score as an SQL expression is the score', async () => {
  const chance = new Chance(seed)
  const below = (most: number) => chance.below(chance.pick([10, most / 100, most]))
  // Small numbers often produce a half, where the slightest difference rounds to another score.
  const weeks = Array.from({ length: 20_000 }, (): WeekOfMail => {
    const sent = below(20_000)
    return {
      ...{ sent, delivered: below(sent + 1), bounced: below(sent / 5 + 1) },
      ...{ failed: below(sent / 2 + 1), complained: below(sent / 100 + 1) },
    }
  })
  const column = (name: keyof WeekOfMail) => sql.ref(name)
  const { rows } = await db.read((tx) =>
    sql<WeekOfMail & { score: number }>`
      select *, ${scoreSql({
        ...{ sent: column('sent'), delivered: column('delivered'), bounced: column('bounced') },
        ...{ failed: column('failed'), complained: column('complained') },
      })}::int as score
        from json_to_recordset(${JSON.stringify(weeks)}::json)
             as week (sent bigint, delivered bigint, bounced bigint, failed bigint, complained bigint)`.execute(
      tx,
    ),
  )
  assert.equal(rows.length, weeks.length)
  for (const { score, ...week } of rows) assert.equal(score, scoreOf(week), JSON.stringify(week))
})
