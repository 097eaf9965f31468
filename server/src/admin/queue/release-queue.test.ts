import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
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
