import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertDocumented, documentedTypes } from '../../testing/expectations/documented-events.ts'
import { endpointConfiguration, fixtures } from '../../testing/fixtures/fixtures.ts'
import { Client } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { fanOutAll } from '../../testing/harness/fan-out.ts'
import { eventually } from '../../testing/harness/waiting.ts'
import { webhookHarness } from '../../testing/harness/webhook-harness.ts'
import { writeRecipientEvents } from '../mail/messages/events.ts'
import { eventTypes } from '../shared/events.ts'
import { relayToControl } from './relay-to-control.ts'
import { relayToMail } from './relay-to-mail.ts'

/** The full path from an operation to a real receiver, and back to the endpoint's state. */
const database = await testDatabase()
const stage = await webhookHarness(database)
const { api, receiver } = stage
const { email } = await api.makeAdmin()
const admin = new Client(api.url, await api.tokenOf(email))
const deps = { db: api.context.db.admin, mailDb: api.context.cells.all[0].mail }
stage.startWorker()

test('an endpoint is tested, disabled by a 410, enabled again, and has its events replayed', async () => {
  const projectId = await stage.makeProject()
  const endpoint = await stage.makeEndpoint(projectId)
  const item = `/projects/${projectId}/endpoints/${endpoint.id}`
  const show = async () => (await admin.get(item)).body
  const arrived = (count: number) => receiver.until(count, endpoint.path)

  assert.equal((await admin.post(`${item}/test`)).status, 202)
  await relayToMail(deps)
  const [first] = await arrived(1)
  assert.equal(JSON.parse(first?.body ?? '').type, 'endpoint.test')
  await stage.untilQuiet(endpoint)
  await relayToControl(deps)
  assert.ok((await show()).last_success_at)
  assert.equal((await admin.get(`${item}/attempts?outcome=delivered`)).body.data.length, 1)

  receiver.answer({ status: 410 }, endpoint.path)
  const [lost = ''] = await stage.publishEvents(projectId)
  await arrived(2)
  await stage.untilQuiet(endpoint)
  await relayToControl(deps)
  const off = await show()
  assert.deepEqual([off.is_active, typeof off.disabled_reason], [false, 'string'])
  assert.ok(off.consecutive_failures > 0, JSON.stringify(off))
  assert.equal((await admin.post(`${item}/test`)).status, 422)

  receiver.answer({ status: 204 }, endpoint.path)
  assert.equal((await admin.patch(item, endpointConfiguration)).status, 200)
  await database.query('update control.endpoints set url = $2 where id = $1', [
    endpoint.id,
    `${receiver.url}${endpoint.path}`,
  ])
  assert.equal((await admin.post(`${item}/replay`, { event_id: lost })).status, 202)
  await relayToMail(deps)
  const again = await arrived(3)
  assert.equal(again[2]?.headers['webhook-id'], lost)
  await stage.untilQuiet(endpoint)
  await relayToControl(deps)
  const on = await show()
  assert.deepEqual([on.is_active, on.disabled_reason, on.consecutive_failures], [true, null, 0])

  const from = new Date(Date.now() - 3_600_000).toISOString()
  const range = { from, to: new Date(Date.now() - 1).toISOString(), only_undelivered: false }
  assert.equal((await admin.post(`${item}/replay`, range)).status, 202)
  await relayToMail(deps)
  await arrived(4)

  await receiver.down()
  await stage.publishEvents(projectId, 5)
  await stage.untilQuiet(endpoint)
  assert.equal((await admin.delete(item, { reason: 'Not needed' })).status, 204)
  await relayToMail(deps)
  await eventually('the queue of the endpoint is empty', async () => (await stage.waitingFor(endpoint)) === 0)
})

test('every payload that a receiver gets is as the OpenAPI document describes it', async () => {
  await receiver.up()
  // Those of domains and of inbound mail are checked where DNS and SMTP cause them.
  const isCausedHere = (type: string) => !/^(domain|inbound)[.]/.test(type)
  const { makeProject, makePlan, makeDomain, makeApiKey } = fixtures(database, admin)
  const project = await makeProject({ plan_id: (await makePlan()).id })
  const { name } = await makeDomain(project.id, { mta_provider: 'service', status: 'verified' })
  const scopes = ['messages:send', 'suppressions:write'] as const
  const { secret } = await makeApiKey(project.id, { scopes: [...scopes], allowed_ips: [] })
  const shop = new Client(api.url, secret, '/v1')
  const endpoint = await stage.makeEndpoint(project.id)
  const failing = await stage.makeEndpoint(project.id)
  await database.query('update control.endpoints set events = $2 where id = $1', [endpoint.id, eventTypes])

  const item = `/projects/${project.id}`
  assert.equal((await shop.post('/suppressions', { address: 'no@example.net' })).status, 201)
  const mail = { from: `hello@${name}`, subject: 'Your order', text: 'It is on its way.' }
  const sent = await shop.post('/messages', {
    ...mail,
    to: ['a@example.net', 'no@example.net'],
    tags: ['order'],
  })
  assert.equal(sent.status, 202, sent.text)
  for (const is_locked of [true, false])
    assert.equal((await admin.patch(item, { is_locked, reason: 'Ticket 4711' })).status, 200)
  assert.equal((await admin.post(`${item}/endpoints/${endpoint.id}/test`)).status, 202)
  receiver.answer({ status: 410 }, failing.path)
  const results = ['sent', 'delivered', 'deferred', 'bounced', 'failed', 'complained'] as const
  await stage.mail.transaction((tx) =>
    writeRecipientEvents(
      tx,
      results.map((kind) => ({
        ...{ projectId: project.id, messageId: sent.body.id, recipientNo: 0, type: `message.${kind}` },
        ...{ recipient: 'a@example.net', status: '2.0.0', diagnostic: '250 2.0.0 Ok' },
      })),
    ),
  )
  await relayToMail(deps)
  await fanOutAll(stage.mail, database)
  await receiver.until(1, failing.path)
  await stage.untilQuiet(failing)
  await relayToControl(deps)
  await relayToMail(deps)
  await fanOutAll(stage.mail, database)

  const expected = documentedTypes.filter(isCausedHere).toSorted()
  const got = await receiver.until(expected.length, endpoint.path)
  const payloads = got.map(({ body }) => JSON.parse(body))
  for (const payload of payloads) assertDocumented(payload)
  assert.deepEqual(payloads.map(({ type }) => type).toSorted(), expected)
  assert.deepEqual(documentedTypes.toSorted(), [...eventTypes, 'endpoint.test'].toSorted())
})
