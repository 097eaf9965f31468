import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runDiscards } from '../../core/mail/dispatch/discards.ts'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { databaseNow, openDatabase, testDatabase } from '../../testing/harness/database.ts'
import { publishDue } from '../../testing/harness/publish-results.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeSender } = senders(api, database, admin)
const { makeMail, stateOf, countsOf } = mailRows(database)
const db = openDatabase(database).as('admin')
const { mailOf } = api.context.cells
const { mail } = api.context.cells.all[0]
const reason = 'The customer sent the mailing twice'

const discard = (projectId: number, body: object = {}, query = '') =>
  admin.post(`/projects/${projectId}/queue/discard${query}`, { reason, ...body })
const run = () => runDiscards(db, mailOf, new AbortController().signal)
const show = async (projectId: number, id: number) =>
  (await admin.get(`/projects/${projectId}/queue/discards/${id}`)).body
const queued = (projectId: number, more: Parameters<typeof makeMail>[1] = {}) =>
  makeMail(projectId, { status: 'queued', dispatch: 'ready', attempt: 0, ...more })
const isQueued = async (one: Awaited<ReturnType<typeof makeMail>>) => (await stateOf(one)).dispatch !== null

/** Starts a discard and executes it. The preview must equal the result. */
async function discardAll(projectId: number, body: object): Promise<number> {
  const [effect] = (await discard(projectId, body, '?dry_run=true')).body.effects
  const { id, matched } = (await discard(projectId, body)).body
  await run()
  const { status, discarded } = await show(projectId, id)
  assert.deepEqual([status, matched], ['finished', discarded])
  assert.match(effect, new RegExp(`^Recipients that will be discarded: ${discarded} of \\d+\\.$`))
  return discarded
}

describe('queue.discard', () => {
  test('fails queued recipients in each state with one event, and nothing else', async () => {
    const { id } = await makeProject()
    const gone = [
      await queued(id),
      await queued(id, { status: 'deferred', dispatch: 'deferred' }),
      await queued(id, { sendIn: '1 day', status: 'scheduled', dispatch: 'scheduled' }),
    ]
    const leased = await queued(id, { dispatch: 'leased' })
    const kept = [await queued(id, { dispatch: 'awaiting' }), await queued((await makeProject()).id)]
    const answer = await discard(id)
    assert.equal(answer.status, 202, answer.text)
    const { id: discardId, created_at, updated_at, ...rest } = answer.body
    assert.deepEqual(rest, {
      project_id: id,
      ...{ older_than: null, tag: null, recipient_domain: null },
      ...{ status: 'running', matched: 3, discarded: 0, reason, finished_at: null },
    })
    assert.equal(created_at, updated_at)
    const row = (await auditRowOf(database, answer)) ?? assert.fail()
    assert.deepEqual(
      [row.operation, row.project_id, row.reason, row.before],
      ['queue.discard', id, reason, null],
    )
    assert.equal((row.after as { matched: number }).matched, 3)

    await run()
    // If the attempt fails, the recipient is queued again.
    assert.ok(await isQueued(leased))
    assert.equal((await show(id, discardId)).status, 'running')
    await database.query('delete from mail.dispatch where message_id = $1', [leased.messageId])
    await run()
    await publishDue(mail)
    const shown = await show(id, discardId)
    assert.deepEqual([shown.status, shown.discarded], ['finished', 3])
    assert.ok(shown.finished_at >= created_at)
    for (const one of gone) {
      const { status, reply, dispatch, events } = await stateOf(one)
      assert.deepEqual(
        [status, reply, dispatch],
        ['failed', 'Discarded by the operator before it was sent.', null],
      )
      assert.deepEqual(
        events.map(({ type }) => type),
        ['message.failed'],
      )
    }
    for (const one of kept) assert.ok(await isQueued(one))
    assert.deepEqual(await countsOf(id), { failed: 3 })
    await run()
    assert.deepEqual(await show(id, discardId), shown)
  })

  test('waits for the report about mail that the MTA may have accepted', async () => {
    const { id } = await makeProject()
    const doubtful = [
      // The connection was lost, and the next attempt is due later.
      await queued(id, { dispatch: 'deferred', attempt: 1, sendIn: '1 hour' }),
      // The worker crashed during the attempt.
      await queued(id, { dispatch: 'ready', attempt: 1, sendIn: '1 hour' }),
    ]
    const { id: discardId } = (await discard(id)).body
    await run()
    for (const one of doubtful) assert.ok(await isQueued(one))
    const { status, discarded } = await show(id, discardId)
    assert.deepEqual([status, discarded], ['running', 0])
    await database.query(
      `update mail.dispatch set due_at = due_at - interval '2 hours' where project_id = $1`,
      [id],
    )
    await run()
    assert.deepEqual((await show(id, discardId)).status, 'finished')
    for (const one of doubtful) assert.ok(!(await isQueued(one)))
  })

  test('discards only what matches all filters', async () => {
    const { id } = await makeProject()
    const old = { daysAgo: 1 }
    const matching = await queued(id, { ...old, tags: ['sale', 'a'], address: 'Ada@Example.com' })
    const others = [
      await queued(id, { tags: ['sale'], address: 'ada@example.com' }),
      await queued(id, { ...old, tags: ['sales'], address: 'ada@example.com' }),
      await queued(id, { ...old, tags: ['sale'], address: 'ada@mail.example.com' }),
      await queued(id, { ...old, tags: ['sale'], address: 'ada@notexample.com' }),
    ]
    const older_than = new Date((await databaseNow(database)).getTime() - 3_600_000).toISOString()
    const body = { older_than, tag: 'sale', recipient_domain: 'EXAMPLE.com' }
    assert.equal(await discardAll(id, body), 1)
    assert.equal(await isQueued(matching), false)
    for (const one of others) assert.ok(await isQueued(one))
  })

  test('has filters that work alone', async () => {
    const { id } = await makeProject()
    await queued(id, { tags: ['sale'] })
    await queued(id, { address: 'ada@bücher.example'.replace('bücher', 'xn--bcher-kva') })
    await queued(id, { daysAgo: 1 })
    await queued(id)
    const older_than = new Date((await databaseNow(database)).getTime() - 3_600_000).toISOString()
    assert.equal(await discardAll(id, { tag: 'sale' }), 1)
    assert.equal(await discardAll(id, { tag: 'sale' }), 0)
    assert.equal(await discardAll(id, { recipient_domain: 'Bücher.example' }), 1)
    assert.equal(await discardAll(id, { older_than }), 1)
    assert.equal(await discardAll(id, { tag: null, recipient_domain: null, older_than: null }), 1)
  })

  test('does not discard mail that is accepted after the start', async () => {
    const sender = await makeSender()
    const first = await sender.send({ to: ['a@example.net', 'b@example.net'] })
    const { id } = (await discard(sender.id)).body
    const later = await sender.send()
    await run()
    const statusOf = async (message: string) =>
      (await admin.get(`${sender.path}/messages/${message}`)).body.status
    assert.deepEqual([await statusOf(first), await statusOf(later)], ['failed', 'queued'])
    assert.equal((await show(sender.id, id)).discarded, 2)
  })

  test('waits for the last result of a deferred recipient, so that its last event is the failure', async () => {
    const { id } = await makeProject()
    const one = await queued(id, { status: 'deferred', dispatch: 'deferred' })
    await database.query(
      `insert into mail.attempt_results (message_id, recipient_no, attempt, project_id, type, is_test, recipient)
       values ($1, 0, 1, $2, 'deferred', false, 'someone@example.net')`,
      [one.messageId, id],
    )
    const { id: discardId } = (await discard(id)).body
    await run()
    assert.equal((await show(id, discardId)).status, 'running')
    await database.query('update mail.attempt_results set due_at = postern.now()')
    await publishDue(mail)
    await run()
    await publishDue(mail)
    assert.equal((await show(id, discardId)).status, 'finished')
    const { events } = await stateOf(one)
    assert.deepEqual(
      events.map(({ type }) => type),
      ['message.deferred', 'message.failed'],
    )
  })

  test('counts exactly in a preview, and discards nothing', async () => {
    const { id } = await makeProject()
    const one = await queued(id, { tags: ['sale'] })
    await queued(id)
    await queued(id, { dispatch: 'leased' })
    const { body } = await discard(id, { tag: 'sale' }, '?dry_run=true')
    assert.deepEqual(body.effects, [
      'Recipients that will be discarded: 1 of 2.',
      'Each of them fails with an event. They cannot be restored.',
    ])
    assert.deepEqual(body.warnings, [
      'Recipients that are not discarded, because they are being sent or await a report: 1.',
    ])
    await run()
    assert.ok(await isQueued(one))
    assert.deepEqual((await admin.get(`/projects/${id}/queue/discards`)).body.data, [])
  })

  test('does not count mail of test keys as failed', async () => {
    const { id } = await makeProject()
    const { messageId } = await queued(id)
    await database.query(`update mail.dispatch set provider = 'none' where message_id = $1`, [messageId])
    assert.equal(await discardAll(id, {}), 1)
    await publishDue(mail)
    assert.deepEqual(await countsOf(id), {})
  })

  test('is refused while another one is running', async () => {
    const { id } = await makeProject()
    const answers = await Promise.all(Array.from({ length: 6 }, () => discard(id)))
    const refused = answers.filter(({ status }) => status !== 202)
    assert.equal(refused.length, 5)
    for (const answer of refused) assertProblem(answer, 409, 'request_in_progress')
  })

  test('rejects invalid filters', async () => {
    const { id } = await makeProject()
    const invalid = [
      { older_than: '2027-02-30T00:00:00Z' },
      { older_than: 'yesterday' },
      { tag: '' },
      { tag: 'a b' },
      { recipient_domain: '' },
      { recipient_domain: 'ada@example.com' },
      { recipient_domain: 'a b.example' },
    ]
    for (const body of invalid) {
      for (const query of ['', '?dry_run=true']) {
        assertProblem(await discard(id, body, query), 422, 'validation_failed')
      }
    }
  })

  test('does not keep a project from being deleted', async () => {
    const { id } = await makeProject()
    await queued(id)
    assert.equal(await discardAll(id, {}), 1)
    await database.query('delete from control.project_stats where project_id = $1', [id])
    await database.query('delete from control.members where project_id = $1', [id])
    const { id: running } = (await discard(id)).body
    await database.query('delete from control.projects where id = $1', [id])
    await run()
    assert.deepEqual(await database.query('select from control.discards where id = $1', [running]), [])
  })
})
