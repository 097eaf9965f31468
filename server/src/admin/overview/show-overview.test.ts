import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readOverview } from '../../core/overview/overview.ts'
import { sharedOverview } from '../../core/overview/shared-overview.ts'
import { announceProcess } from '../../core/processes/processes.ts'
import type { Db } from '../../platform/db/db.ts'
import { PosternError } from '../../platform/errors.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { eventually } from '../../testing/harness/waiting.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makePolicy, makeProject, makeIntervention } = fixtures(database, admin)
const { makeSender } = senders(api, database, admin)
const { db, cells, log } = api.context
const [cell] = cells.all

const overview = async () => {
  const { status, body, text } = await admin.get('/overview')
  assert.equal(status, 200, text)
  return body
}

describe('overview.show', () => {
  test('has 24 hours, even without mail', async () => {
    const { at, mail, cells: shown } = await overview()
    assert.equal(mail.hours.length, 24)
    assert.equal(mail.hours[0].starts_at, `${at.slice(0, 13)}:00:00.000Z`)
    assert.deepEqual([mail.total.sent, mail.bounce_rate], [0, null])
    assert.deepEqual(
      shown.map(({ is_reachable, counted_until }: Record<string, unknown>) => [is_reachable, counted_until]),
      [[true, null]],
    )
  })

  test('shows the mail of the hours and their rates', async () => {
    await database.query(
      `insert into mail.sending_totals
         (bucket_at, sent, delivered, deferred, bounced, failed, complained, suppressed, rejected)
       select date_trunc('hour', postern.now()) - ago * interval '1 hour', 90, 80, 0, 20, 5, 1, 0, 10
         from unnest(array[0, 3, 23, 24]) as ago`,
    )
    const { mail, cells: shown } = await overview()
    const sent = mail.hours.map((hour: { sent: number }) => hour.sent)
    assert.deepEqual([sent[0], sent[1], sent[3], sent[23]], [90, 0, 90, 90])
    assert.equal(mail.total.sent, 270)
    assert.deepEqual([mail.bounce_rate, mail.complaint_rate, mail.failure_rate], [20, 1, 5])
    assert.match(shown[0].counted_until, /:05:00.000Z$/)
  })

  test('shows the same hours by mailbox provider', async () => {
    assert.deepEqual((await overview()).mail.mailbox_providers, [])
    await database.query(
      `insert into mail.mailbox_provider_totals
         (hour_at, mailbox_provider, sent, delivered, deferred, bounced, failed, complained, rejected)
       select date_trunc('hour', postern.now(), 'UTC') - ago * interval '1 hour', provider, sent, 80, 30, 20, 5, 1, 10
         from unnest(array[0, 23, 24]) as ago, (values ('gmail', 90), ('other', 490), ('apple', 40)) as of (provider, sent)`,
    )
    const { mailbox_providers } = (await overview()).mail
    assert.deepEqual(
      mailbox_providers.map(({ mailbox_provider, volume }: Record<string, unknown>) => [
        mailbox_provider,
        volume,
      ]),
      [
        ['gmail', 200],
        ['apple', 100],
        ['other', 1000],
      ],
    )
    assert.deepEqual(mailbox_providers[0], {
      ...{ mailbox_provider: 'gmail', volume: 200, sent: 180 },
      ...{ delivered: 160, deferred: 60, bounced: 40, failed: 10, complained: 2 },
      ...{ delivery_rate: 80, deferral_rate: 30, bounce_rate: 20, failure_rate: 5, complaint_rate: 1 },
    })
  })

  test('shows the queue, the age of its oldest mail and the holds of an operator', async () => {
    const sender = await makeSender()
    await sender.send()
    await sender.send()
    await database.query(`update mail.dispatch set due_at = postern.now() - interval '10 minutes'`)
    const { queue } = await overview()
    assert.equal(queue.states.ready, 2)
    assert.equal(queue.oldest_ready[0].provider, 'service')
    assert.ok(queue.oldest_ready[0].seconds >= 600)
    assert.deepEqual(queue.holds, [])
    await database.query(`insert into control.dispatch_holds (scope) values ('service')`)
    const held = (await overview()).queue
    assert.deepEqual(held.oldest_ready, [])
    assert.equal(held.holds[0].scope, 'service')
    await database.query('delete from control.dispatch_holds')
  })

  test('shows processes once, dead ones first', async () => {
    const running = announceProcess({
      ...{ db: cell.mail, log, kind: 'worker', version: '1.0.0', cell: null },
    })
    cleanUp(() => running.stop())
    await database.query(
      `insert into postern.processes (id, kind, host, version, seen_at)
       values (gen_random_uuid(), 'intake', 'mx1', '1.0.0', postern.now() - interval '2 minutes')`,
    )
    const processes = await eventually('the process is announced', async () => {
      const found = (await overview()).processes
      return found.length === 2 && found
    })
    assert.deepEqual(
      processes.map(({ kind, is_alive }: { kind: string; is_alive: boolean }) => [kind, is_alive]),
      [
        ['intake', false],
        ['worker', true],
      ],
    )
  })

  test('shows the audit log, its checkpoint and the age of the outbox', async () => {
    const project = await makeProject()
    const edited = await admin.patch(`/projects/${project.id}`, { name: 'Renamed' })
    assert.equal(edited.status, 200)
    const before = await overview()
    assert.equal(before.checkpoint.last_at, null)
    assert.ok(before.checkpoint.uncovered_seconds > 0)
    const { data } = (await admin.get('/audit?limit=10')).body
    assert.deepEqual(before.acts, data)
    assert.equal(before.acts[0].operation, 'projects.edit')
    await database.query(
      `insert into control.outbox (project_id, topic, payload, created_at)
       values ($1, 'event', '{}', postern.now() - interval '2 minutes')`,
      [project.id],
    )
    await database.query(
      `insert into mail.outbox (project_id, topic, payload, created_at)
       values ($1, 'project.stats_changed', '{}', postern.now() - interval '3 minutes')`,
      [project.id],
    )
    const after = await overview()
    assert.ok(after.outbox_seconds >= 120)
    assert.ok(after.cells[0].outbox_seconds >= 180)
  })

  test('shows tripped policies and projects that need attention', async () => {
    const policy = await makePolicy({ name: 'Too strict' })
    await database.query('update control.policies set tripped_at = postern.now() where id = $1', [policy.id])
    const project = await makeProject({ name: 'Spammer' })
    const lock = await makeIntervention(project.id, { kind: 'lock' })
    const { policies_tripped, attention } = await overview()
    assert.deepEqual(
      policies_tripped.map(({ id, name }: { id: number; name: string }) => [id, name]),
      [[policy.id, 'Too strict']],
    )
    assert.equal(attention.counts.intervention, 1)
    assert.equal(attention.counts.appeal, 0)
    const { since, ...entry } = attention.newest[0]
    assert.equal(since, lock.created_at)
    assert.deepEqual(entry, {
      project_id: project.id,
      project_name: 'Spammer',
      cause: 'intervention',
      resource_id: lock.id,
      detail: 'lock',
    })
  })
})

describe('requests at the same time', () => {
  /** The admin role, with another way to read. */
  const reading = (read: Db['read']): Db =>
    new Proxy(db.admin, { get: (target, name: keyof Db) => (name === 'read' ? read : target[name]) })

  test('share one overview, which begins after they were made', async () => {
    const released = Promise.withResolvers<void>()
    let begun = 0
    const deps = {
      db: reading(async (work) => {
        begun++
        await released.promise
        return db.admin.read(work)
      }),
      cells: [],
    }
    const first = sharedOverview(deps)
    await eventually('the first read begins', () => begun === 1)
    const rest = Array.from({ length: 49 }, () => sharedOverview(deps))
    const project = await makeProject()
    const lock = await makeIntervention(project.id, { kind: 'lock' })
    released.resolve()
    const [shown] = await Promise.all(rest)
    await first
    assert.equal(begun, 2)
    assert.equal(shown?.attention.newest[0]?.since, lock.created_at)
  })

  test('share a failure, which is not repeated for each of them', async () => {
    let begun = 0
    const failing = reading(() => Promise.reject(new PosternError('unavailable', `failure ${++begun}`)))
    const all = Array.from({ length: 50 }, () => sharedOverview({ db: failing, cells: [] }))
    const outcomes = await Promise.allSettled(all)
    assert.ok(outcomes.every(({ status }) => status === 'rejected'))
    assert.equal(begun, 1)
  })
})

describe('a cell that does not answer', () => {
  const cellThat = (read: () => Promise<never>) => ({
    name: 'away',
    db: new Proxy(cell.mail, { get: (target, name: keyof Db) => (name === 'read' ? read : target[name]) }),
  })
  const readWith = (away: { name: string; db: Db }) =>
    readOverview({ db: db.admin, cells: [{ name: 'here', db: cell.mail }, away] }, 100)

  test('is shown as unreachable, and the others are shown', async () => {
    const refused = new PosternError('unavailable', 'The database is unavailable.')
    const hung = new Promise<never>(() => {})
    for (const away of [cellThat(() => Promise.reject(refused)), cellThat(() => hung)]) {
      const { cells: shown, mail } = await readWith(away)
      assert.deepEqual(shown[1], {
        name: 'away',
        is_reachable: false,
        counted_until: null,
        outbox_seconds: null,
      })
      assert.equal(mail.hours.length, 24)
    }
  })

  test('does not hide other errors', async () => {
    await assert.rejects(readWith(cellThat(() => Promise.reject(new Error('a bug')))), /a bug/)
  })
})
