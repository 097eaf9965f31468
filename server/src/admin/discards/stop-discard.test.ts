import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { purgeDiscards } from '../../core/control/discards/discards.ts'
import { runDiscards } from '../../core/mail/dispatch/discards.ts'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDiscard } = fixtures(database, admin)
const { makeMail } = mailRows(database)
const db = openDatabase(database).as('admin')
const reason = 'The customer needs the mail after all'

const run = () => runDiscards(db, api.context.cells.mailOf, new AbortController().signal)
const act = (projectId: number, id: number, what: 'stop' | 'resume', query = '') =>
  admin.post(`/projects/${projectId}/queue/discards/${id}/${what}${query}`, { reason })
const start = async (projectId: number): Promise<number> =>
  (await admin.post(`/projects/${projectId}/queue/discard`, { reason })).body.id
const waiting = async (projectId: number) => (await admin.get(`/projects/${projectId}/queue`)).body.waiting

async function withMail() {
  const { id } = await makeProject()
  await makeMail(id, { status: 'queued', dispatch: 'ready', attempt: 0 })
  return { projectId: id, id: await start(id) }
}

describe('discards.stop and discards.resume', () => {
  test('stop and continue a discard, each with an audit row', async () => {
    const { projectId, id } = await withMail()
    const stopped = await act(projectId, id, 'stop')
    assert.deepEqual([stopped.status, stopped.body.status], [200, 'stopped'], stopped.text)
    const row = (await auditRowOf(database, stopped)) ?? assert.fail()
    assert.deepEqual([row.operation, row.reason], ['discards.stop', reason])
    const statuses = [row.before, row.after].map((state) => (state as { status: string }).status)
    assert.deepEqual(statuses, ['running', 'stopped'])
    await run()
    assert.equal(await waiting(projectId), 1)

    const resumed = await act(projectId, id, 'resume')
    assert.equal(resumed.body.status, 'running')
    assert.equal((await auditRowOf(database, resumed))?.operation, 'discards.resume')
    await run()
    assert.equal(await waiting(projectId), 0)
    for (const what of ['stop', 'resume'] as const)
      assertProblem(await act(projectId, id, what), 409, 'already_ended')
  })

  test('change nothing the second time', async () => {
    const { projectId, id } = await withMail()
    for (const what of ['resume', 'stop', 'stop', 'resume', 'resume'] as const) {
      const { status } = (await admin.get(`/projects/${projectId}/queue/discards/${id}`)).body
      const isChange = (what === 'stop') === (status === 'running')
      const { changes, effects } = (await act(projectId, id, what, '?dry_run=true')).body
      assert.deepEqual([changes.length, effects.length], isChange ? [1, 1] : [0, 0])
      assert.equal((await auditRowOf(database, await act(projectId, id, what))) !== undefined, isChange)
    }
  })

  test('a stopped discard does not prevent another one, and is not resumed meanwhile', async () => {
    const { projectId, id } = await withMail()
    await act(projectId, id, 'stop')
    const other = await start(projectId)
    assert.notEqual(other, undefined)
    assertProblem(await act(projectId, id, 'resume'), 409, 'request_in_progress')
    await run()
    assert.equal((await act(projectId, id, 'resume')).status, 200)
  })

  test('need a discard of the project', async () => {
    const [{ id }, other] = [await makeProject(), await makeProject()]
    const foreign = await makeDiscard(other.id)
    for (const what of ['stop', 'resume'] as const) {
      assertProblem(await act(id, foreign.id, what), 404, 'not_found')
      assertProblem(await act(987_654_321, foreign.id, what), 404, 'not_found')
    }
  })
})

test('discards are purged 90 days after they finished or were stopped, but not while they run', async () => {
  const project = await makeProject()
  const [old, young, other] = [
    await makeDiscard(project.id),
    await makeDiscard(project.id),
    await makeProject(),
  ]
  const running = await start(other.id)
  await database.query(
    `update control.discards set updated_at = postern.now() - interval '91 days' where id = any($1)`,
    [[old.id, running]],
  )
  await db.transaction(purgeDiscards)
  const left = await database.query<{ id: string }>('select id from control.discards order by id')
  const ids = left.map(({ id }) => Number(id))
  assert.deepEqual(
    [old.id, young.id, running].map((id) => ids.includes(id)),
    [false, true, true],
  )
})
