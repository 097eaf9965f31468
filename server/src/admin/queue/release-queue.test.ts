import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeSender, claimedOf } = senders(api, database, admin)
const reason = 'The customer has corrected the mailing'

const release = (path: string, query = '') => admin.post(`${path}/queue/release${query}`, { reason })

/** A project with one message, held by an administrator. */
async function heldSender() {
  const sender = await makeSender()
  const messageId = await sender.send()
  const { status } = await admin.post(`${sender.path}/queue/hold`, { reason })
  assert.equal(status, 200)
  return { ...sender, messageId }
}

describe('queue.release', () => {
  test('sends the held mail', async () => {
    const { id, path, messageId } = await heldSender()
    const answer = await release(path)
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(answer.body, {
      project_id: id,
      is_held: false,
      held_at: null,
      waiting: 1,
      scheduled: 0,
      leaving: 0,
      awaiting: 0,
    })
    const row = await auditRowOf(database, answer)
    assert.deepEqual(
      [row?.operation, row?.project_id, row?.reason, row?.before, row?.after],
      ['queue.release', id, reason, { is_held: true }, { is_held: false }],
    )
    assert.equal((await admin.get(`${path}/messages/${messageId}`)).body.status, 'queued')
    assert.deepEqual(await claimedOf(id), [messageId])
    assert.equal((await admin.get(`${path}/queue`)).body.leaving, 1)
  })

  test('of a queue that is not held changes nothing', async () => {
    const { path } = await makeSender()
    const shown = await admin.get(`${path}/queue`)
    const answer = await release(path)
    assert.deepEqual([answer.status, answer.text], [200, shown.text])
    assert.equal(await auditRowOf(database, answer), undefined)
  })

  test('followed by another hold starts a new holding period', async () => {
    const { path } = await heldSender()
    const { held_at } = (await admin.get(`${path}/queue`)).body
    await release(path)
    const again = await admin.post(`${path}/queue/hold`, { reason })
    assert.ok(again.body.held_at > held_at)
    assert.ok(await auditRowOf(database, again))
  })

  const obstacles = {
    'The project is locked, so its mail is held regardless.': { is_locked: true },
    'The subscription status is "paused", so its mail is held regardless.': {
      admin_subscription_status: 'paused',
    },
    'The subscription status is "canceled", so its mail is held regardless.': {
      admin_subscription_status: 'canceled',
    },
  }
  for (const [warning, change] of Object.entries(obstacles)) {
    test(`sends nothing if mail is held for another reason, and warns in a preview: ${warning}`, async () => {
      const { id, path, messageId } = await heldSender()
      await admin.patch(path, { ...change, reason })
      const { body } = await release(path, '?dry_run=true')
      assert.deepEqual([body.effects, body.warnings], [['Messages that are still held: 1.'], [warning]])
      assert.equal((await release(path)).body.is_held, false)
      assert.equal((await admin.get(`${path}/messages/${messageId}`)).body.status, 'held')
      assert.deepEqual(await claimedOf(id), [])
    })
  }

  test('counts the messages in a preview, and releases nothing', async () => {
    const { id, path } = await heldSender()
    const [intervention] = (await admin.get(`${path}/interventions`)).body.data
    const { body } = await release(path, '?dry_run=true')
    assert.deepEqual(body, {
      operation: 'queue.release',
      reason_required: true,
      changes: [
        { resource: 'queue', id, field: 'is_held', before: true, after: false },
        {
          ...{ resource: 'intervention', id: intervention.id, field: 'ended_by' },
          ...{ before: null, after: 'administrator' },
        },
      ],
      effects: ['Messages that will be sent: 1.'],
      warnings: [],
    })
    assert.equal((await admin.get(`${path}/queue`)).body.is_held, true)
    assert.deepEqual(await claimedOf(id), [])
  })
})

describe('queue.release with per_minute', () => {
  const gradually = (path: string, per_minute: number, query = '') =>
    admin.post(`${path}/queue/release${query}`, { per_minute, reason })
  const inForce = async (path: string) => (await admin.get(`${path}/interventions?in_force=true`)).body.data

  test('ends the hold and starts a pace until the queued mail is gone', async () => {
    const { id, path } = await heldSender()
    const answer = await gradually(path, 100)
    assert.deepEqual([answer.status, answer.body.is_held], [200, false], answer.text)
    const [pace, ...others] = await inForce(path)
    assert.deepEqual([pace.kind, pace.pace_per_hour, pace.reason, others], ['pace', 6000, reason, []])
    assert.ok(pace.drains_before >= pace.created_at)
    const row = (await auditRowOf(database, answer)) ?? assert.fail()
    assert.deepEqual(
      [row.operation, row.before, row.after],
      ['queue.release', { is_held: true }, { is_held: false }],
    )
    assert.deepEqual(
      (row.related as { before: object | null }[]).map(({ before }) => before === null),
      [false, true],
    )
    const [restriction] = await database.query(
      'select kind, pace_per_hour from control.queue_restrictions where project_id = $1',
      [id],
    )
    assert.deepEqual(restriction, { kind: 'pace', pace_per_hour: 6000 })
  })

  test('also paces mail of a queue that is not held', async () => {
    const { path, send } = await makeSender()
    await send()
    assert.ok(await auditRowOf(database, await gradually(path, 5)))
    assert.equal((await inForce(path)).length, 1)
  })

  test('starts no pace if nothing waits', async () => {
    const { path, id } = await makeSender()
    assert.equal(await auditRowOf(database, await gradually(path, 5)), undefined)
    await admin.post(`${path}/queue/hold`, { reason })
    assert.equal((await gradually(path, 5)).body.is_held, false)
    assert.deepEqual(await inForce(path), [])
    assert.deepEqual(await claimedOf(id), [])
  })

  test('says in a preview how long it takes', async () => {
    const { path, id } = await heldSender()
    const { body } = await gradually(path, 1, '?dry_run=true')
    assert.deepEqual(body.effects, [
      'Messages that will be sent: 1.',
      'At 1 per minute, 1 recipient will take about 1 min.',
    ])
    assert.deepEqual(body.warnings, [])
    await database.query(
      `insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient)
       select postern.uuid7(postern.now()), 0, $1, 1, 'service', 'a@example.com' from generate_series(1, 41229)`,
      [id],
    )
    const [, long] = (await gradually(path, 100, '?dry_run=true')).body.effects
    assert.equal(long, 'At 100 per minute, 41,230 recipients will take about 6 h 53 min.')
    const slow = (await gradually(path, 1, '?dry_run=true')).body
    assert.equal(slow.effects[1], 'At 1 per minute, 41,230 recipients will take about 29 days.')
    assert.deepEqual(slow.warnings, [
      'The release takes longer than 7 days. Mail that waits for 7 days fails.',
    ])
    assert.equal((await admin.get(`${path}/queue`)).body.is_held, true)
  })

  test('warns that a slower pace stays in force', async () => {
    const { path } = await heldSender()
    await admin.post(`${path}/interventions`, { kind: 'pace', pace_per_hour: 7, reason })
    const { body } = await gradually(path, 1, '?dry_run=true')
    assert.deepEqual(body.warnings, ['A pace stays in force: sending is limited to 7 recipients per hour.'])
  })

  test('accepts only what a pace allows', async () => {
    const { path } = await heldSender()
    for (const perMinute of [0, 16_667, 1.5]) {
      assertProblem(await gradually(path, perMinute), 422, 'validation_failed')
    }
  })

  test('can be edited, and still ends when the mail is gone', async () => {
    const { path } = await heldSender()
    await gradually(path, 100)
    const [{ id, drains_before }] = await inForce(path)
    const change = { pace_per_hour: 60, public_note: 'Soon.', expires_at: null }
    const edited = await admin.patch(`${path}/interventions/${id}`, { ...change, reason })
    assert.equal(edited.body.drains_before, drains_before)
    const preview = await admin.patch(`${path}/interventions/${id}?dry_run=true`, {
      ...change,
      pace_per_hour: 30,
    })
    assert.match(preview.body.effects[0], /until the gradual release is complete/)
  })
})
