import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { customers } from '../../testing/fixtures/customers.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { holdingBack } from '../../testing/harness/lock-queue.ts'
import { eventually } from '../../testing/harness/waiting.ts'

/** Effects of one project's requests on another project's requests (docs/security.md lists them by number). */
const database = await testDatabase()
const poolSize = 4
const api = await startApi(database, { POSTERN_DATABASE_POOL_SIZE: String(poolSize) })
const { ownProject } = await customers(api, database)

/** The number of customers' transactions that are waiting for a lock. Each occupies a connection in the pool. */
async function stuckTransactions(): Promise<number> {
  const rows = await database.query(
    `select from pg_locks join pg_stat_activity as activity using (pid)
      where not granted and activity.datname = current_database() and activity.application_name = 'postern test'`,
  )
  return rows.length
}

describe('a project with slow transactions (H7)', () => {
  test('uses at most two connections, and other projects are served', async () => {
    const [slow, other] = [await ownProject(), await ownProject()]
    const edits = Array.from({ length: 3 * poolSize }, (_, no) => ({ name: `Name ${no}` }))
    await holdingBack(
      database,
      `select from control.projects where id = ${slow.project.id} for update`,
      () => Promise.all(edits.map((edit) => slow.owner.patch(`/projects/${slow.project.id}`, edit))),
      async () => {
        await eventually('two transactions wait', async () => (await stuckTransactions()) === 2)
        for (let request = 0; request < 5; request++) {
          const answer = await other.owner.get(`/projects/${other.project.id}/domains`)
          assert.equal(answer.status, 200, answer.text)
        }
        assert.equal(await stuckTransactions(), 2)
      },
    )
  })
})
