import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endpointConfiguration } from '../../testing/fixtures/fixtures.ts'
import { Client } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { eventually } from '../../testing/harness/waiting.ts'
import { webhookHarness } from '../../testing/harness/webhook-harness.ts'
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
