import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ClaimQueue } from '../../core/mail/dispatch/claims.ts'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { domainRows } from '../../testing/fixtures/domain-rows.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { inDays, senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { eventually } from '../../testing/harness/waiting.ts'
import { withWorker } from '../../testing/harness/worker.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeSender, makeProject, claimedOf } = senders(api, database, admin)
const { makeMail } = mailRows(database)
const { jobs } = domainRows(database)
const reason = 'Sent to the wrong list'

const cancel = (path: string, id: string, query = '', headers = {}): Promise<Answer> =>
  admin.post(`${path}/messages/${id}/cancel${query}`, { reason }, headers)
const statusOf = async (path: string, id: string) => (await admin.get(`${path}/messages/${id}`)).body.status
const jobsFor = async (id: string) =>
  (await jobs('messages.cancel')).filter((job) => (job as Record<string, unknown>)['message_id'] === id)

const canceled = async (path: string, id: string): Promise<void> => {
  await eventually('the message is canceled', async () => (await statusOf(path, id)) === 'canceled')
}

describe('messages.cancel', () => {
  test('returns the unchanged message and enqueues a job for a worker', async () => {
    const sender = await makeSender()
    const id = await sender.send({ send_at: inDays(1) })
    const shown = await admin.get(`${sender.path}/messages/${id}`)
    const answer = await cancel(sender.path, id)
    assert.deepEqual([answer.status, answer.text], [200, shown.text])
    assert.equal(answer.headers.get('etag'), null)
    assert.deepEqual(await jobsFor(id), [{ project_id: sender.id, message_id: id }])
    const [row] = await database.query(
      `select operation, project_id::int, resource_type, resource_id, reason, before, after from control.audit
        where request_id = $1`,
      [answer.headers.get('x-request-id')],
    )
    assert.deepEqual(row, {
      operation: 'messages.cancel',
      project_id: sender.id,
      resource_type: 'message',
      resource_id: id,
      reason,
      before: { status: 'scheduled' },
      // The row records the request, not the result.
      after: { status: 'scheduled', is_cancel_requested: true },
    })
  })

  test('counts the remaining recipients in a preview, and enqueues nothing', async () => {
    const sender = await makeSender()
    await database.query(
      `insert into mail.suppressions (project_id, address, reason) values ($1, 'gone@example.net', 'manual')`,
      [sender.id],
    )
    const to = ['a@example.net', 'b@example.net', 'gone@example.net']
    const id = await sender.send({ to, send_at: inDays(1) })
    const { status, body } = await admin.post(`${sender.path}/messages/${id}/cancel?dry_run=true`, {})
    assert.equal(status, 200)
    assert.deepEqual(body, {
      operation: 'messages.cancel',
      reason_required: true,
      changes: [{ resource: 'message', id, field: 'is_cancel_requested', before: null, after: true }],
      effects: ['Recipients who will not receive the message: 2.'],
      warnings: ['If the message is due within seconds, it might still be sent.'],
    })
    assert.deepEqual(await jobsFor(id), [])
  })

  test('is executed once by the worker, regardless of how often it is requested', async () => {
    const sender = await makeSender()
    const to = ['a@example.net', 'b@example.net']
    const [id, kept] = [
      await sender.send({ to, send_at: inDays(1) }),
      await sender.send({ send_at: inDays(2) }),
    ]
    for (const answer of [await cancel(sender.path, id), await cancel(sender.path, id)]) {
      assert.equal(answer.status, 200)
      assert.ok(await auditRowOf(database, answer))
    }
    await withWorker(api, database, () => canceled(sender.path, id))
    const { recipients } = (await admin.get(`${sender.path}/messages/${id}`)).body
    assert.deepEqual(
      recipients.map(({ status }: { status: string }) => status),
      ['canceled', 'canceled'],
    )
    assert.equal(await statusOf(sender.path, kept), 'scheduled')
    const { scheduled } = (await admin.get(`${sender.path}/queue`)).body
    assert.equal(scheduled, 1)
    assertProblem(await cancel(sender.path, id), 409, 'in_use')
  })

  test('also works for a message in a held queue', async () => {
    const sender = await makeSender()
    const id = await sender.send({ send_at: inDays(1) })
    await admin.post(`${sender.path}/queue/hold`, { reason })
    assert.equal((await cancel(sender.path, id)).status, 200)
    await withWorker(api, database, () => canceled(sender.path, id))
  })

  test('does not stop a message that a worker is already sending', async () => {
    const sender = await makeSender()
    const id = await sender.send({ send_at: inDays(1) })
    await cancel(sender.path, id)
    await database.query('update mail.dispatch set due_at = postern.now() where message_id = $1', [id])
    await new ClaimQueue(api.context.cells.all[0].mail).sweep()
    assert.deepEqual(await claimedOf(sender.id), [id])
    const unfinished = `select from jobs.job where name = 'messages.cancel' and state < 'completed'`
    await withWorker(api, database, async () => {
      await eventually(
        'the worker has run the job',
        async () => (await database.query(unfinished)).length === 0,
      )
    })
    assert.equal(await statusOf(sender.path, id), 'queued')
    assertProblem(await cancel(sender.path, id), 409, 'in_use')
  })

  test('is rejected for a message that is no longer scheduled, and enqueues nothing', async () => {
    const { id: projectId } = await makeProject()
    const path = `/projects/${projectId}`
    const ends = ['sent', 'delivered', 'bounced', 'failed', 'complained', 'suppressed', 'canceled']
    const made = [
      await makeMail(projectId, { status: 'queued', dispatch: 'ready' }),
      await makeMail(projectId, { status: 'deferred', dispatch: 'deferred' }),
      ...(await Promise.all(ends.map((status) => makeMail(projectId, { status })))),
    ]
    for (const { messageId } of made) {
      for (const query of ['', '?dry_run=true']) {
        const answer = await cancel(path, messageId, query)
        assertProblem(answer, 409, 'in_use')
        assert.equal(await auditRowOf(database, answer), undefined)
      }
      assert.deepEqual(await jobsFor(messageId), [])
    }
  })

  test('returns the first response if repeated with its key, even if the message is already canceled', async () => {
    const sender = await makeSender()
    const id = await sender.send({ send_at: inDays(1) })
    const key = { 'idempotency-key': 'cancel-once' }
    const first = await cancel(sender.path, id, '', key)
    await withWorker(api, database, () => canceled(sender.path, id))
    const again = await cancel(sender.path, id, '', key)
    assert.deepEqual([again.status, again.text], [200, first.text])
    assert.equal(again.headers.get('idempotent-replayed'), 'true')
    assert.equal((await jobsFor(id)).length, 1)
  })

  test("returns the same 404 for another project's message as for a missing one, and enqueues nothing", async () => {
    const [sender, other] = [await makeSender(), await makeProject()]
    const id = await sender.send({ send_at: inDays(1) })
    const foreign = await cancel(`/projects/${other.id}`, id)
    assertProblem(foreign, 404, 'not_found')
    const none = '00000000-0000-7000-8000-000000000000'
    const absent = await cancel(`/projects/${other.id}`, none)
    assert.equal(absent.text.replace(none, id), foreign.text)
    assert.deepEqual(await jobsFor(id), [])
  })
})
