import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Db } from '../../platform/db/db.ts'
import { exposition } from '../../platform/telemetry/metrics.ts'
import { inDays, senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { patienceMs } from '../../testing/harness/waiting.ts'
import { QueueGauges } from './queue-gauges.ts'

/** Queue gauges without a running worker. */
const database = await testDatabase()
const api = await startApi(database)
const { makeSender } = senders(api, database, await signedIn(api))
const { db, cells, log } = api.context
const deps = { db: db.admin, mailDb: cells.all[0].mail, log }

async function shown(name: string): Promise<number | undefined> {
  const line = (await exposition()).split('\n').find((one) => one.startsWith(`${name} `))
  return line === undefined ? undefined : Number(line.slice(name.length + 1))
}

/** Generous limits for slow machines: no statement times out, and nothing is read a second time. */
const patient = { everyMs: 10 * patienceMs, statementMs: patienceMs, maxWaitMs: 2 * patienceMs }

/** Asserts the age of a row that is dated this many seconds before `since`, a time from the database clock. */
async function isAge(name: string, seconds: number, since: string): Promise<void> {
  const value = (await shown(name)) ?? Number.NaN
  const [row] = await database.query<{ most: number }>(
    'select $1 + extract(epoch from postern.now() - $2::timestamptz)::float8 as most',
    [seconds, since],
  )
  const most = row?.most ?? Number.NaN
  assert.ok(value >= seconds && value <= most, `${name} is ${value}, not from ${seconds} to ${most}`)
}

describe('queue gauges', () => {
  test('show ages and counts', async () => {
    const sender = await makeSender()
    const held = await makeSender()
    const [clock] = await database.query<{ now: string }>('select postern.now()::text as now')
    const since = clock?.now ?? ''
    const ids = [await sender.send(), await sender.send(), await sender.send(), await sender.send()]
    await sender.send({ send_at: inDays(1) })
    await held.send()
    await database.query(
      `update mail.dispatch set due_at = postern.now() - interval '1 day' where project_id = $1`,
      [held.id],
    )
    await database.query(`insert into control.queue_restrictions (project_id, kind) values ($1, 'hold')`, [
      held.id,
    ])
    const [oldest, leased, deferred] = ids
    const set = (what: string, id = '') =>
      database.query(`update mail.dispatch set ${what} where message_id = $1`, [id])
    await set(`due_at = postern.now() - interval '10 minutes'`, oldest)
    await set(`state = 'leased', leased_until = postern.now() - interval '1 minute'`, leased)
    await set(`state = 'deferred', due_at = postern.now() - interval '5 minutes'`, deferred)
    await database.query(
      `insert into mail.endpoint_queues (endpoint_id, project_id, due_at, failures)
       values (1, $1, postern.now() - interval '3 minutes', 0), (2, $1, postern.now() - interval '4 minutes', 3),
              (3, $1, postern.now() + interval '4 minutes', 3)`,
      [sender.id],
    )
    await database.query(
      `insert into control.outbox (project_id, topic, payload, created_at)
       values ($1, 'event', '{}', postern.now() - interval '2 minutes')`,
      [sender.id],
    )

    await database.query(
      `insert into mail.attempt_results (message_id, recipient_no, attempt, project_id, type, is_test, recipient, due_at)
       values ($1, 0, 1, $2, 'sent', false, 'a@example.net', postern.now() - interval '6 minutes')`,
      [oldest, sender.id],
    )

    await database.query(
      `insert into control.system_mails (kind, subject_id, created_at, expires_at)
       values ('password_reset', 1, postern.now() - interval '7 minutes', 'infinity'),
              ('password_reset', 2, postern.now(), 'infinity')`,
    )

    await new QueueGauges(deps, patient).refresh()
    assert.equal(await shown('postern_system_mail_oldest_seconds'), undefined, 'no system mail is configured')
    await new QueueGauges({ ...deps, hasSystemMail: true }, patient).refresh()
    await isAge('postern_system_mail_oldest_seconds', 420, since)
    assert.deepEqual(
      api.logLines.filter((line) => line.includes('queue metrics unavailable')),
      [],
    )
    await isAge('postern_queue_oldest_ready_seconds{provider="service"}', 600, since)
    assert.equal(await shown('postern_queue_oldest_ready_seconds{provider="ses"}'), 0)
    assert.equal(await shown('postern_queue_mails{state="ready"}'), 3)
    assert.equal(await shown('postern_queue_mails{state="leased"}'), 1)
    assert.equal(await shown('postern_queue_mails{state="deferred"}'), 1)
    assert.equal(await shown('postern_queue_mails{state="scheduled"}'), 1)
    await isAge('postern_lease_oldest_seconds', 120, since)
    await isAge('postern_queue_overdue_seconds', 300, since)
    await isAge('postern_webhook_lag_seconds{health="healthy"}', 180, since)
    await isAge('postern_webhook_lag_seconds{health="failing"}', 240, since)
    assert.equal(await shown('postern_webhook_endpoints_parked'), 1)
    await isAge('postern_results_overdue_seconds', 360, since)
    await isAge('postern_outbox_lag_seconds{target="mail"}', 120, since)
    assert.ok(((await shown('postern_audit_uncovered_seconds')) ?? 0) > 0)
    assert.equal(await shown('postern_queue_metrics_up'), 1)
  })

  test('are read once every ten seconds, regardless of how often they are scraped', async () => {
    let reads = 0
    const counting = new Proxy(cells.all[0].mail, {
      get(target, name: keyof Db) {
        if (name === 'read') reads++
        return target[name].bind(target)
      },
    })
    const standing = new QueueGauges({ ...deps, mailDb: counting }, patient)
    await Promise.all(Array.from({ length: 20 }, () => standing.refresh()))
    await standing.refresh()
    assert.equal(reads, 1)
    const later = new QueueGauges({ ...deps, mailDb: counting }, { ...patient, everyMs: 0 })
    await later.refresh()
    await later.refresh()
    assert.equal(reads, 3, 'read again after ten seconds')
  })

  test('are cleared when they cannot be read, and the failure is logged once', async () => {
    const away = new Proxy(cells.all[0].mail, {
      get: () => () => Promise.reject(new Error('the database is unavailable')),
    })
    const standing = new QueueGauges({ ...deps, mailDb: away }, { ...patient, everyMs: 0 })
    const before = api.logLines.length
    await standing.refresh()
    await standing.refresh()
    assert.equal(await shown('postern_queue_metrics_up'), 0)
    assert.equal(await shown('postern_queue_mails{state="ready"}'), undefined)
    assert.equal(await shown('postern_audit_uncovered_seconds'), undefined)
    assert.equal(api.logLines.slice(before).length, 1)
    await new QueueGauges(deps, patient).refresh()
    assert.equal(await shown('postern_queue_mails{state="ready"}'), 3)
  })
})
