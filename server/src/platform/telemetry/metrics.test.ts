import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { QueueGauges } from '../../core/gauges/queue-gauges.ts'
import { senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { eventually } from '../../testing/harness/waiting.ts'
import { withWorker } from '../../testing/harness/worker.ts'
import { Sink } from '../../testing/peers/sink.ts'
import { startReceiver } from '../../testing/peers/webhook-receiver.ts'
import { exposition, onScrape } from './metrics.ts'

/** Metrics from the API and a worker under a mixed load, with a real SMTP server and a real webhook receiver. */
const database = await testDatabase()
const sink = await Sink.open()
const receiver = await startReceiver()
const api = await startApi(database, {
  POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${sink.port}`,
  ...receiver.settings,
})
const admin = await signedIn(api)
const { makeSender, makeEndpoint } = senders(api, database, admin)
const { db, cells, log } = api.context
const gauges = new QueueGauges({ db: db.admin, mailDb: cells.all[0].mail, log })
onScrape(() => gauges.refresh())

interface Shown {
  /** Names with labels. */
  series: string[]
  values: Map<string, number>
}

/** Waits until the webhook responses are counted, which happens shortly after they are sent. */
async function shownAfter(webhooks: number): Promise<Shown> {
  await receiver.until(webhooks)
  return eventually(`${webhooks} attempts are counted`, async () => {
    const now = await shown()
    return now.values.get('postern_webhook_attempts_total{outcome="delivered"}') === webhooks && now
  })
}

async function shown(): Promise<Shown> {
  const lines = (await exposition()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const values = new Map(
    lines.map((line): [string, number] => {
      const at = line.lastIndexOf(' ')
      return [line.slice(0, at), Number(line.slice(at + 1))]
    }),
  )
  return { series: [...values.keys()].sort(), values }
}

/**
 * Creates a project, sends mail over every channel, causes mail to be rejected, and requests unknown paths.
 */
async function mixedLoad(): Promise<string[]> {
  const sender = await makeSender()
  const { domain, program, path, id } = sender
  await makeEndpoint(id, { url: `${receiver.url}/hook${id}`, events: ['message.sent'] })
  await database.query(`update control.dkim_keys set state = 'active' where project_id = $1`, [id])
  const to = [`someone@project${id}.example.net`]
  const mail = { from: `a@${domain.name}`, to, subject: 'One', text: 'Hello' }
  await sender.send({ to })
  const batch = await program.post('/messages/batch', {
    messages: [mail, { ...mail, from: 'a@example.com' }],
  })
  assert.equal(batch.status, 202, batch.text)
  assert.equal((await program.post('/messages', { ...mail, from: 'a@example.com' })).status, 403)
  assert.equal((await admin.get(`/projects/${id}999999`)).status, 404)
  assert.equal((await program.get(`/nothing/${id}`)).status, 404)
  assert.equal((await admin.get(`/nothing/${id}`)).status, 404)
  assert.equal((await fetch(`${api.url}/wp-login-${id}.php`)).status, 404)
  assert.equal((await admin.patch(path, { name: `Renamed ${id}` })).status, 200)
  return [domain.name, `project${id}`, `Renamed ${id}`]
}

describe('metrics', () => {
  test('have a number of series that does not grow with projects, domains, endpoints, addresses or unknown paths', async () => {
    await withWorker(api, database, async () => {
      const names = await mixedLoad()
      const before = await shownAfter(2)
      for (let count = 0; count < 8; count++) names.push(...(await mixedLoad()))
      const after = await shownAfter(18)
      // A job's series appears when the job first runs, which can happen at any time.
      const isNew = (one: string) => !before.series.includes(one) && !one.startsWith('postern_job_')
      assert.deepEqual(after.series.filter(isNew), [])
      const text = after.series.join('\n')
      for (const name of [...names, '127.0.0.1', 'wp-login'])
        assert.ok(!text.includes(name), `${name} is in a label`)

      const value = (name: string) => after.values.get(name)
      assert.equal(value('postern_mails_accepted_total{channel="http"}'), 9)
      assert.equal(value('postern_mails_accepted_total{channel="batch"}'), 9)
      assert.equal(value('postern_mails_refused_total{channel="batch",code="domain_not_verified"}'), 9)
      assert.equal(
        value('postern_http_requests_total{operation="customer.messages.send-by-key",status="2xx"}'),
        9,
      )
      assert.equal(
        value('postern_http_requests_total{operation="customer.messages.send-by-key",status="4xx"}'),
        9,
      )
      assert.equal(
        value('postern_http_request_duration_seconds_count{operation="customer.messages.send-by-key"}'),
        18,
      )
      assert.equal(value('postern_http_problems_total{code="domain_not_verified"}'), 9)
      assert.ok((value('postern_http_requests_total{operation="none",status="4xx"}') ?? 0) >= 9)
      assert.equal(value('postern_dispatch_attempts_total{provider="service",outcome="sent"}'), 18)
      assert.equal(value('postern_handover_duration_seconds_count{provider="service"}'), 18)
      assert.equal(value('postern_events_total{type="message.sent"}'), 18)
      assert.ok((value('postern_job_last_success_timestamp_seconds{queue="chores"}') ?? 0) > 0)
      assert.equal(value('postern_database_pool_size{role="mail"}'), 4)
    })
  })
})
