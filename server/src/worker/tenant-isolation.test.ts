import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { workerDeps } from '../context/context.ts'
import { senders } from '../testing/fixtures/sending-projects.ts'
import { startApi } from '../testing/harness/api.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { signedIn } from '../testing/harness/client.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { eventually } from '../testing/harness/waiting.ts'
import { Sink } from '../testing/peers/sink.ts'
import { Dispatcher } from './dispatcher.ts'

/** How one tenant can affect another tenant's mail (docs/security.md lists these cases by number). */
const sink = await Sink.open()
const database = await testDatabase()
const api = await startApi(database, { POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${sink.port}` })
const admin = await signedIn(api)
const { makeSender, makeEndpoint } = senders(api, database, admin)
const [noisy, quiet] = [await makeSender(), await makeSender()]
await database.query(`update control.dkim_keys set state = 'active'`)
const { dispatch, log } = workerDeps(api.context)

function startDispatcher(): Dispatcher {
  const dispatcher = new Dispatcher({ ...dispatch, db: api.context.cells.all[0].mail, log })
  dispatcher.start()
  cleanUp(() => dispatcher.stop())
  return dispatcher
}

const receivedBy = (prefix: string): string[] =>
  sink.received.flatMap(({ to }) => to.filter((address) => address.startsWith(prefix))).toSorted()

const statusesOf = async (projectId: number) =>
  database.query(
    'select status, count(*)::int as count from mail.recipients where project_id = $1 group by 1 order by 1',
    [projectId],
  )

describe('a project with 20,000 endpoints', () => {
  const mails = 20
  const batch = () =>
    noisy.program.post('/messages/batch', {
      messages: Array.from({ length: 200 }, (_, no) => ({
        ...{ from: `a@${noisy.domain.name}`, subject: 's', text: 't', to: [`noisy${no}@example.net`] },
      })),
    })

  test('has its batch accepted with as many rows as any other project (H1)', async () => {
    const { resource } = await makeEndpoint(noisy.id, { events: ['message.accepted', 'message.sent'] })
    await database.query(
      `insert into control.endpoints (project_id, name, url, events, encrypted_secret, secret_hint)
       select project_id, name, url, events, encrypted_secret, secret_hint
         from control.endpoints, generate_series(2, 20000) where id = $1`,
      [resource.id],
    )
    assert.equal((await batch()).status, 202)
    const [rows] = await database.query(
      `select (select count(*)::int from mail.messages) as messages, (select count(*)::int from mail.events) as events,
              (select count(*)::int from mail.fan_outs) as fan_outs,
              (select count(*)::int from mail.deliveries) as deliveries, (select count(*)::int from mail.wakes) as wakes`,
    )
    assert.deepEqual(rows, { messages: 200, events: 200, fan_outs: 200, deliveries: 0, wakes: 0 })
  })

  test("does not cause another project's mail to be sent twice or remain unrecorded (C1)", async () => {
    const dispatcher = startDispatcher()
    const to = Array.from({ length: mails }, (_, no) => `quiet${no}@example.net`)
    for (const one of to) await quiet.send({ to: [one] })
    await eventually('all messages are recorded as sent', async () => {
      const [row] = await database.query<{ count: number }>(
        `select count(*)::int as count from mail.recipients where status <> 'sent'`,
      )
      return row?.count === 0
    })
    await dispatcher.stop()
    assert.deepEqual(receivedBy('quiet'), to.toSorted())
    assert.equal(receivedBy('noisy').length, 200)
    assert.deepEqual(await statusesOf(quiet.id), [{ status: 'sent', count: mails }])
    const [counted] = await database.query<{ sent: number; results: number; events: number }>(
      `select (select sent::int from mail.daily_counters where project_id = $1) as sent,
              (select count(*)::int from mail.attempt_results) as results,
              (select count(*)::int from mail.events where project_id = $1 and type = 'message.sent') as events`,
      [quiet.id],
    )
    assert.deepEqual(counted, { sent: mails, results: 0, events: mails })
    assert.deepEqual(
      api.logLines.filter((line) => line.includes('could not be')),
      [],
    )
  })
})

describe('a project that sends many large messages (M8)', () => {
  test("has each message attempted once, without delaying another project's small or large mail", async () => {
    await database.query('delete from control.endpoints')
    const attachments = [{ filename: 'invoice.pdf', content: randomBytes(1_100_000).toString('base64') }]
    const recipients = Array.from({ length: 30 }, (_, no) => `large${no}@example.net`)
    await noisy.send({ to: recipients, attachments })
    const ids = [
      await quiet.send({ to: ['small@example.net'] }),
      await quiet.send({ to: ['invoice@example.net'], attachments }),
    ]
    const dispatcher = startDispatcher()
    await eventually('the other project’s messages are sent', async () => {
      const rows = await database.query(
        `select from mail.recipients where message_id = any($1) and status = 'sent'`,
        [ids],
      )
      return rows.length === 2
    })
    await eventually('all large messages have arrived', () => receivedBy('large').length >= recipients.length)
    await dispatcher.stop()
    const order = sink.received.map(({ to }) => to[0] ?? '')
    for (const one of ['small@example.net', 'invoice@example.net']) {
      const last = order.findLastIndex((address) => address.startsWith('large'))
      assert.ok(order.indexOf(one) < last, `${one} arrived after all large messages of the other project`)
    }
    assert.deepEqual(receivedBy('large'), recipients.toSorted())
    const attempts = await database.query(
      `select outcome, count(*)::int as count from mail.attempts
        where message_id in (select message_id from mail.dispatch union all select message_id from mail.recipients
                              where address like 'large%' or message_id = any($1)) group by 1`,
      [ids],
    )
    assert.deepEqual(attempts, [{ outcome: 'sent', count: 32 }])
  })
})
