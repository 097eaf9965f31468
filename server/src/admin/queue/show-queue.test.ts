import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject } = fixtures(database, admin)
const { makeMail } = mailRows(database)

const queueOf = (projectId: number) => admin.get(`/projects/${projectId}/queue`)

describe('queue.show', () => {
  test("counts one project's mail by state", async () => {
    const [{ id }, other] = [await makeProject(), await makeProject()]
    const empty = await queueOf(id)
    assert.equal(empty.status, 200)
    assert.deepEqual(Object.entries(empty.body), [
      ['project_id', id],
      ['is_held', false],
      ['held_at', null],
      ['waiting', 0],
      ['scheduled', 0],
      ['leaving', 0],
      ['awaiting', 0],
    ])
    assert.equal(empty.headers.get('etag'), null)
    for (const dispatch of ['ready', 'ready', 'deferred', 'leased', 'awaiting', 'awaiting']) {
      await makeMail(id, { status: 'queued', dispatch })
    }
    for (const sendIn of ['1 hour', '29 days']) await makeMail(id, { sendIn })
    await makeMail(id)
    await makeMail(other.id, { status: 'queued', dispatch: 'ready' })
    const { waiting, scheduled, leaving, awaiting } = (await queueOf(id)).body
    assert.deepEqual([waiting, scheduled, leaving, awaiting], [3, 2, 1, 2])
  })

  test('limits the counts', async () => {
    const { id } = await makeProject()
    await database.query(
      `insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient)
       select postern.uuid7(postern.now()), 0, $1, 1, 'service', 'a@example.com' from generate_series(1, 10005)`,
      [id],
    )
    assert.equal((await queueOf(id)).body.waiting, 10_001)
    const { body } = await admin.post(`/projects/${id}/queue/hold?dry_run=true`, {})
    assert.match(body.effects[0], /^Queued messages: more than 10000\. /)
  })

  test('returns 404 for a missing project', async () => {
    assertProblem(await queueOf(999_999_999), 404, 'not_found')
  })
})
