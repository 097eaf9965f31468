import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ClaimQueue } from '../../core/mail/dispatch/claims.ts'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { inDays, senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { databaseNow, testDatabase } from '../../testing/harness/database.ts'
import { publishDue } from '../../testing/harness/publish-results.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeSender, makeProject, claimedOf } = senders(api, database, admin)
const { makeMail } = mailRows(database)
const reason = 'Customer asked us to stop a mailing'

const hold = (path: string, query = '') => admin.post(`${path}/queue/hold${query}`, { reason })
const statusOf = async (path: string, id: string) => (await admin.get(`${path}/messages/${id}`)).body.status

describe('queue.hold', () => {
  test('keeps queued mail from being claimed, and shows it as held', async () => {
    const sender = await makeSender()
    const id = await sender.send()
    const heldAfter = await databaseNow(database)
    const answer = await hold(sender.path)
    assert.equal(answer.status, 200, answer.text)
    const { held_at, ...rest } = answer.body
    assert.deepEqual(rest, {
      project_id: sender.id,
      is_held: true,
      waiting: 1,
      scheduled: 0,
      leaving: 0,
      awaiting: 0,
    })
    assert.ok(heldAfter <= new Date(held_at) && new Date(held_at) <= (await databaseNow(database)), held_at)
    assert.deepEqual((await admin.get(`${sender.path}/queue`)).body, answer.body)

    assert.deepEqual(await claimedOf(sender.id), [])
    const message = (await admin.get(`${sender.path}/messages/${id}`)).body
    assert.deepEqual([message.status, message.recipients[0].status], ['held', 'held'])
    const { operation, project_id, before, after, ...row } =
      (await auditRowOf(database, answer)) ?? assert.fail()
    assert.deepEqual(
      [operation, project_id, row.reason, before, after],
      ['queue.hold', sender.id, reason, { is_held: false }, { is_held: true }],
    )
  })

  test('accepts new mail, which is also held, and shows scheduled mail as scheduled', async () => {
    const sender = await makeSender()
    await hold(sender.path)
    const [id, later] = [await sender.send(), await sender.send({ send_at: inDays(1) })]
    assert.deepEqual(await claimedOf(sender.id), [])
    assert.equal(await statusOf(sender.path, id), 'held')
    assert.equal(await statusOf(sender.path, later), 'scheduled')
    const { waiting, scheduled } = (await admin.get(`${sender.path}/queue`)).body
    assert.deepEqual([waiting, scheduled], [1, 1])
  })

  test('affects only one project', async () => {
    const [held, other] = [await makeSender(), await makeSender()]
    await hold(held.path)
    const id = await other.send()
    assert.equal(await statusOf(other.path, id), 'queued')
    assert.deepEqual(await claimedOf(other.id), [id])
  })

  test('survives a lock and unlock, and the preview of the unlock says so', async () => {
    const sender = await makeSender()
    await sender.send()
    await hold(sender.path)
    await admin.patch(sender.path, { is_locked: true, reason })
    const preview = await admin.patch(`${sender.path}?dry_run=true`, { is_locked: false })
    assert.deepEqual(preview.body.effects, [
      'New mail is accepted. Queued messages: 1. The queue is still held.',
    ])
    await admin.patch(sender.path, { is_locked: false, reason })
    assert.deepEqual(await claimedOf(sender.id), [])
    assert.equal((await admin.get(`${sender.path}/queue`)).body.is_held, true)
  })

  test('makes mail fail after seven days, and not earlier', async () => {
    const sender = await makeSender()
    const [old, young] = [await sender.send(), await sender.send()]
    await hold(sender.path)
    for (const [id, age] of [
      [old, '7 days 1 minute'],
      [young, '6 days 23 hours'],
    ]) {
      await database.query('update mail.dispatch set due_at = due_at - $2::interval where message_id = $1', [
        id,
        age,
      ])
    }
    const { mail } = api.context.cells.all[0]
    await new ClaimQueue(mail).expire()
    await publishDue(mail)
    assert.equal(await statusOf(sender.path, old), 'failed')
    assert.equal(await statusOf(sender.path, young), 'held')
    const { data } = (await admin.get(`${sender.path}/messages/${old}/events`)).body
    assert.equal(data.at(-1).type, 'message.failed')
  })

  test('of a held queue changes nothing', async () => {
    const { path } = await makeSender()
    const first = await hold(path)
    const again = await hold(path)
    assert.deepEqual([again.status, again.text], [200, first.text])
    assert.equal(await auditRowOf(database, again), undefined)
    const preview = await hold(path, '?dry_run=true')
    assert.deepEqual([preview.body.changes, preview.body.effects], [[], []])
  })

  test('takes effect once for many concurrent requests', async () => {
    const { id } = await makeProject()
    const answers = await Promise.all(Array.from({ length: 12 }, () => hold(`/projects/${id}`)))
    assert.deepEqual(new Set(answers.map(({ text }) => text)).size, 1)
    const rows = await Promise.all(answers.map((answer) => auditRowOf(database, answer)))
    assert.equal(rows.filter((row) => row !== undefined).length, 1)
  })

  test('counts queued and unstoppable messages in a preview, and holds nothing', async () => {
    const sender = await makeSender()
    const id = await sender.send()
    await makeMail(sender.id, { status: 'deferred', dispatch: 'deferred' })
    await makeMail(sender.id, { status: 'queued', dispatch: 'leased' })
    const { body } = await admin.post(`${sender.path}/queue/hold?dry_run=true`, {})
    assert.deepEqual(body, {
      operation: 'queue.hold',
      reason_required: true,
      changes: [
        { resource: 'queue', id: sender.id, field: 'is_held', before: false, after: true },
        { resource: 'intervention', id: null, field: 'kind', before: null, after: 'hold' },
      ],
      effects: [
        'Queued messages: 2. They are held until the queue is released, and fail after 7 days.',
        'New mail is still accepted, but held.',
      ],
      warnings: ['Messages being sent now that cannot be stopped: 1.'],
    })
    assert.equal((await admin.get(`${sender.path}/queue`)).body.is_held, false)
    assert.deepEqual(await claimedOf(sender.id), [id])
  })

  test('does not say in the preview for a locked project that mail is accepted', async () => {
    const { path } = await makeSender()
    await admin.patch(path, { is_locked: true, reason })
    const { body } = await hold(path, '?dry_run=true')
    assert.equal(body.effects.length, 1)
    assert.deepEqual(body.warnings, ['The project is locked, so its mail is held regardless.'])
  })

  test('requires only a reason', async () => {
    const { path } = await makeSender()
    assertProblem(await admin.post(`${path}/queue/hold`), 422, 'reason_required')
    assertProblem(await admin.post(`${path}/queue/hold`, { reason, until: 'x' }), 422, 'validation_failed')
    assertProblem(await hold('/projects/999999999'), 404, 'not_found')
    assert.equal((await admin.get(`${path}/queue`)).body.is_held, false)
  })
})
