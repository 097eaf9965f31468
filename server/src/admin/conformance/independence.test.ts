import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { holdingBack } from '../../testing/harness/lock-queue.ts'

const database = await testDatabase()
const api = await startApi(database)
const [ada, grace] = [await signedIn(api), await signedIn(api)]
const { makeProject } = fixtures(database, ada)

describe('two administrators', () => {
  test('on different projects do not wait for each other, not even for the audit log', async () => {
    const [held, free] = [await makeProject(), await makeProject()]
    let isHeldDone = false
    const answer = await holdingBack(
      database,
      // Acquires locks in the same order as a project change: the project, then the head of its chain.
      `update control.projects set version = version where id = ${held.id};
       update control.audit_heads set seq = seq where chain = ${held.id}`,
      async () => {
        const edited = await ada.patch(`/projects/${held.id}`, { name: 'Waited' })
        isHeldDone = true
        return edited
      },
      async () => {
        // Few enough to finish before Ada's lock wait times out, even on a slow machine.
        for (let n = 0; n < 5; n++) {
          const edited = await grace.patch(`/projects/${free.id}`, { name: `Edited ${n}` })
          assert.equal(edited.status, 200, 'an edit of another project did not succeed')
        }
        assert.equal(isHeldDone, false)
      },
    )
    assert.equal(answer.status, 200)
    const rows = await database.query<{ chain: string; rows: string }>(
      `select chain, count(*) as rows from control.audit where operation = 'projects.edit' group by chain order by chain`,
    )
    assert.deepEqual(
      rows.map(({ chain, rows }) => [Number(chain), Number(rows)]),
      [
        [held.id, 1],
        [free.id, 5],
      ],
    )
  })
})
