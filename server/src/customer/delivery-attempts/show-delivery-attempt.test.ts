import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { receivers } from '../../testing/fixtures/receiving-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { openInbound, someMail } from '../../testing/harness/inbound-harness.ts'
import { submit } from '../../testing/harness/submission-harness.ts'

const database = await testDatabase()
const api = await startApi(database)
const { admin, make, ownProject, member, keyOf } = await customers(api, database)
const { makeMail, makeEvent, makeAttempt } = mailRows(database)
const { owner, project } = await ownProject()
const { resource: endpoint } = await make.makeEndpoint(project.id)

const at = (id: string, projectId = project.id) => `/projects/${projectId}/delivery-attempts/${id}`
const attempted = (eventId: string, projectId = project.id) => makeAttempt(projectId, endpoint.id, eventId)

describe('delivery-attempts.show by a customer', () => {
  test('returns the attempt with the payload of an event about a message', async () => {
    const { messageId } = await makeMail(project.id, { tags: ['order'] })
    const [event] = await database.query<{ id: string; created_at: Date }>(
      `insert into mail.events (id, project_id, type, message_id, recipient_no, data)
       values (postern.uuid7(postern.now()), $1, 'message.delivered', $2, 0,
               '{"status": "2.0.0", "recipient": "ada@example.com"}')
       returning id, date_trunc('milliseconds', created_at) as created_at`,
      [project.id, messageId],
    )
    const { id: eventId, created_at } = event ?? assert.fail()
    const id = await attempted(eventId)
    const { status, body, text } = await owner.get(at(id))
    assert.equal(status, 200, text)
    const { payload, ...attempt } = body
    assert.deepEqual(
      attempt,
      (await owner.get(`/projects/${project.id}/endpoints/${endpoint.id}/attempts`)).body.data[0],
    )
    assert.deepEqual(JSON.parse(payload.text), {
      type: 'message.delivered',
      timestamp: created_at.toISOString(),
      data: {
        ...{ status: '2.0.0', recipient: 'ada@example.com' },
        ...{ project_id: project.id, message_id: messageId, tags: ['order'], metadata: {} },
      },
    })
    assert.deepEqual([payload.size_bytes, payload.is_truncated], [payload.text.length, false])
    // Without the message, the tags of the payload are unknown.
    await database.query('delete from mail.messages where id = $1', [messageId])
    assert.equal((await owner.get(at(id))).body.payload, null)
    await database.query('delete from mail.events where id = $1', [eventId])
    assert.equal((await owner.get(at(id))).body.payload, null)
  })

  test('returns the payload of inbound mail, and the first 256 KiB if it is longer', async () => {
    const shop = await receivers(database, admin).makeReceiver()
    await shop.route(null, shop.toEndpoint)
    const { eventsOf, open } = await openInbound(api, database)
    const client = await open()
    const fields = ['Content-Type: text/plain; charset=utf-8']
    for (const line of ['Short: ä', 'Lang und länger: ä'.repeat(40)]) {
      const mail = Buffer.from(someMail({ fields, body: `${line}\r\n`.repeat(500) }))
      assert.match(await submit(client, mail, { to: [shop.at('x')] }), /^250/)
    }
    const [short, long] = await eventsOf(shop.id)
    const reader = await keyOf(shop.id, ['endpoints:write'])
    const payloadOf = async (eventId: string | undefined) => {
      const [row] = await database.query<{ id: string }>(
        `update mail.delivery_attempts set event_type = 'inbound.received' where id = $1 returning id`,
        [await attempted(eventId ?? assert.fail(), shop.id)],
      )
      return { id: row?.id ?? assert.fail(), ...(await reader.get(at(row?.id ?? '', shop.id))).body.payload }
    }
    const whole = await payloadOf(short?.id)
    assert.equal(whole.is_truncated, false)
    assert.equal(whole.size_bytes, Buffer.byteLength(whole.text))
    assert.deepEqual(JSON.parse(whole.text).data, { ...short?.data, project_id: shop.id })
    const part = await payloadOf(long?.id)
    const start = Buffer.byteLength(part.text)
    assert.equal(part.is_truncated, true)
    assert.ok(start > 256 * 1024 - 4 && start <= 256 * 1024, String(start))
    assert.ok(part.size_bytes > start && !part.text.includes('\ufffd'))

    // An administrator does not see it.
    const answer = await admin.get(at(whole.id, shop.id))
    assert.deepEqual([answer.status, answer.body.payload], [200, null])
  })

  test('requires the permission to configure endpoints', async () => {
    const id = await attempted(await makeEvent(project.id))
    for (const caller of [
      await member(project.id, 'developer'),
      await keyOf(project.id, ['endpoints:write']),
    ]) {
      assert.equal((await caller.get(at(id))).status, 200)
    }
    assertProblem(await (await member(project.id, 'viewer')).get(at(id)), 403, 'insufficient_role')
    assertProblem(await (await keyOf(project.id, ['endpoints:read'])).get(at(id)), 403, 'insufficient_scope')
    const { owner: other, project: elsewhere } = await ownProject()
    assertProblem(await other.get(at(id)), 404, 'not_found')
    assertProblem(await other.get(at(id, elsewhere.id)), 404, 'not_found')
  })
})
