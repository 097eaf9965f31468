import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fixtures } from '../../../testing/fixtures/fixtures.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { purgeFirings } from './firings.ts'

const database = await testDatabase()
const api = await startApi(database)
const { makeProject, makeFiring } = fixtures(database, await signedIn(api))

describe('purgeFirings', () => {
  test('deletes firings after 90 days', async () => {
    const project = await makeProject()
    const kept = []
    for (const days of [0, 89, 91, 400]) {
      const id = await makeFiring(project.id)
      await database.query(
        `update control.firings set created_at = postern.now() - $2 * interval '1 day' where id = $1`,
        [id, days],
      )
      if (days < 90) kept.push(id)
    }
    assert.equal(await api.context.db.admin.transaction(purgeFirings), 2)
    const left = await database.query<{ id: string }>('select id from control.firings order by id')
    assert.deepEqual(
      left.map(({ id }) => Number(id)),
      kept,
    )
  })
})
