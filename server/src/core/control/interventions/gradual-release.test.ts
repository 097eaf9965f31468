import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { senders } from '../../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { endDrained } from './gradual-release.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeSender, claimedOf } = senders(api, database, admin)
const db = openDatabase(database, { poolSize: 8 }).as('admin')
const { mailOf } = api.context.cells
const reason = 'The mailing is corrected'

/** A project with a message that is released gradually. */
async function released() {
  const sender = await makeSender()
  const messageId = await sender.send()
  await admin.post(`${sender.path}/queue/hold`, { reason })
  const answer = await admin.post(`${sender.path}/queue/release`, { per_minute: 100, reason })
  assert.equal(answer.status, 200, answer.text)
  const [{ id }] = (await admin.get(`${sender.path}/interventions?in_force=true`)).body.data
  const show = async () => (await admin.get(`${sender.path}/interventions/${id}`)).body
  const auditRows = async () =>
    (await admin.get(`/audit?project_id=${sender.id}&operation=interventions.drain`)).body.data
  return { ...sender, messageId, interventionId: id as number, show, auditRows }
}

describe('a gradual release', () => {
  test('ends once, by one of several workers, when the mail that was ready is gone', async () => {
    const { id, messageId, send, show, auditRows, interventionId } = await released()
    assert.equal(await endDrained(db, mailOf), 0)
    const later = await send()
    assert.deepEqual((await claimedOf(id)).toSorted(), [messageId, later].toSorted())
    await database.query(
      `update mail.dispatch set state = 'ready', due_at = postern.now() where message_id = $1`,
      [later],
    )
    const ended = await Promise.all(Array.from({ length: 4 }, () => endDrained(db, mailOf)))
    assert.equal(
      ended.reduce((sum, count) => sum + count),
      1,
    )
    const { ended_by, ended_at } = await show()
    assert.equal(ended_by, 'drained')
    assert.ok(ended_at !== null)
    const [row, ...others] = await auditRows()
    assert.deepEqual(
      [row.actor_kind, row.actor.id, row.resource_id, others],
      ['system', 0, String(interventionId), []],
    )
    const restrictions = await database.query(
      'select from control.queue_restrictions where project_id = $1',
      [id],
    )
    assert.deepEqual(restrictions, [])
  })

  test('does not wait for mail of test keys, or for mail that is deferred', async () => {
    const { id, messageId, show } = await released()
    await database.query(`update mail.dispatch set state = 'deferred' where message_id = $1`, [messageId])
    await database.query(
      `insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient, due_at)
       values (postern.uuid7(postern.now()), 0, $1, 1, 'none', 'a@example.net', postern.now() - interval '1 hour')`,
      [id],
    )
    assert.equal(await endDrained(db, mailOf), 1)
    assert.equal((await show()).ended_by, 'drained')
  })

  test('waits for large mail, and for mail to each provider', async () => {
    for (const change of ['is_large = true', `provider = 'ses'`]) {
      const { messageId, path, interventionId } = await released()
      await database.query(`update mail.dispatch set ${change} where message_id = $1`, [messageId])
      assert.equal(await endDrained(db, mailOf), 0)
      await admin.post(`${path}/interventions/${interventionId}/end`, { reason })
    }
  })

  test('is not ended a second time after an administrator ended it', async () => {
    const { messageId, path, interventionId, auditRows } = await released()
    await database.query('delete from mail.dispatch where message_id = $1', [messageId])
    await admin.post(`${path}/interventions/${interventionId}/end`, { reason })
    assert.equal(await endDrained(db, mailOf), 0)
    assert.deepEqual(await auditRows(), [])
  })
})
