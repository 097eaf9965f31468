import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { MailOf } from '../../../platform/db/cells.ts'
import { assertCounted } from '../../../testing/expectations/sending-counters.ts'
import { fixtures } from '../../../testing/fixtures/fixtures.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { Killed, killedAt, type Point, points } from '../../../testing/harness/killed-db.ts'
import { publishDue } from '../../../testing/harness/publish-results.ts'
import { runDiscards } from './discards.ts'

/** Discards of many recipients. `POSTERN_TEST_CASES` sets the number. */
const cases = Number(process.env['POSTERN_TEST_CASES'] ?? 3000)

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject } = fixtures(database, admin)
const opened = openDatabase(database, { poolSize: 10 })
const [db, mail] = [opened.as('admin'), opened.as('mail')]
const mailOf: MailOf = () => mail
const never = new AbortController().signal
const reason = 'The customer sent the mailing twice'

/** A project with queued recipients in each state, half of them with the tag "sale", ten in each message. */
async function withMail(recipients: number): Promise<{ projectId: number; path: string }> {
  const { id } = await makeProject()
  await database.query(
    `with made as (
       insert into mail.messages (id, project_id, identity_id, from_address, recipient_count, size_bytes, tags)
       select postern.uuid7(postern.now() - interval '1 hour' + n * interval '1 ms'), $1, 1, 'news@example.com', 10, 100,
              case when n % 2 = 0 then '{sale}' else '{}' end::text[]
         from generate_series(1, $2::int) as n returning id
     ), named as (
       select id, no, 'person' || no || '@example.net' as address,
              (array['ready', 'deferred', 'scheduled'])[1 + no % 3] as state
         from made, generate_series(0, 9) as no
     ), queued as (
       insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient, state, due_at)
       select id, no, $1, 1, 'service', address, state, postern.now() + interval '1 day' from named
     )
     insert into mail.recipients (message_id, recipient_no, project_id, kind, address, status)
     select id, no, $1, 'to', address, case state when 'ready' then 'queued' else state end from named`,
    [id, recipients / 10],
  )
  await database.query('analyze mail.dispatch')
  return { projectId: id, path: `/projects/${id}/queue` }
}

async function start(path: string, body: object = {}): Promise<number> {
  const answer = await admin.post(`${path}/discard`, { reason, ...body })
  assert.equal(answer.status, 202, answer.text)
  return answer.body.id
}

const show = async (path: string, id: number) => (await admin.get(`${path}/discards/${id}`)).body

interface Tally {
  queued: number
  failed: number
  /** Failed recipients that do not have exactly one event. */
  wrong: number
}

async function tallyOf(projectId: number): Promise<Tally> {
  for (;;) {
    await publishDue(mail)
    const [left] = await database.query('select from mail.attempt_results limit 1')
    if (!left) break
  }
  const [row] = await database.query<{ [K in keyof Tally]: Tally[K] }>(
    `with events as (
       select message_id, recipient_no, count(*) as count from mail.events
        where project_id = $1 and type = 'message.failed' group by 1, 2
     )
     select (select count(*)::int from mail.dispatch where project_id = $1) as queued,
            count(*) filter (where status = 'failed')::int as failed,
            count(*) filter (where coalesce(events.count, 0) <> (status = 'failed')::int)::int as wrong
       from mail.recipients as recipients left join events using (message_id, recipient_no) where project_id = $1`,
    [projectId],
  )
  return row ?? assert.fail()
}

describe(`a discard of ${cases} recipients`, () => {
  test('is executed by several workers, and each recipient fails once', async (t: TestContext) => {
    const { projectId, path } = await withMail(cases)
    const id = await start(path, { tag: 'sale' })
    while ((await show(path, id)).status !== 'finished')
      await Promise.all(Array.from({ length: 4 }, () => runDiscards(db, mailOf, never)))
    const { matched, discarded, created_at, finished_at } = await show(path, id)
    assert.deepEqual([matched, discarded], [cases / 2, cases / 2])
    assert.deepEqual(await tallyOf(projectId), { queued: cases / 2, failed: cases / 2, wrong: 0 })
    await assertCounted(database, `type = 'message.failed'`)
    t.diagnostic(`discarded ${discarded} of ${cases} recipients from ${created_at} to ${finished_at}`)
  })

  test('survives workers that are killed at each point', async () => {
    const { projectId, path } = await withMail(cases)
    const id = await start(path)
    let kills = 0
    /** Two workers whose connection to one of the databases is lost. */
    const runVictims = async (side: 'control' | 'mail', point: Point) => {
      const before = kills
      const victims = [0, 1].map(() => {
        const dying = killedAt(side === 'mail' ? mail : db, point, 0, () => kills++)
        return side === 'mail' ? runDiscards(db, () => dying, never) : runDiscards(dying, mailOf, never)
      })
      for (const outcome of await Promise.allSettled(victims))
        assert.ok(outcome.status === 'fulfilled' || outcome.reason instanceof Killed, String(outcome))
      assert.ok(kills > before, `${side} ${point}`)
    }
    for (const point of ['before transaction', 'in transaction', 'after transaction'] as const)
      await runVictims('mail', point)
    // A control transaction only follows the last batch.
    for (const point of points) await runVictims('control', point)
    const { status, discarded } = await show(path, id)
    assert.deepEqual([status, discarded], ['finished', cases])
    assert.deepEqual(await tallyOf(projectId), { queued: 0, failed: cases, wrong: 0 })
  })

  test('can be stopped in the middle and resumed', async () => {
    const { projectId, path } = await withMail(cases)
    const id = await start(path)
    let batches = 0
    const stoppingMail: MailOf = () => ({
      ...mail,
      readOne: (work) => mail.readOne(work),
      transaction: async (work) => {
        const result = await mail.transaction(work)
        // After the row of the progress and two batches.
        if (++batches === 3) await admin.post(`${path}/discards/${id}/stop`, { reason })
        return result
      },
    })
    await runDiscards(db, stoppingMail, never)
    assert.equal(batches, 3)
    const { status, discarded } = await show(path, id)
    assert.deepEqual([status, discarded], ['stopped', 2000])
    assert.equal((await tallyOf(projectId)).failed, 2000)
    await admin.post(`${path}/discards/${id}/resume`, { reason })
    await runDiscards(db, mailOf, never)
    const after = await show(path, id)
    assert.deepEqual([after.status, after.discarded], ['finished', cases])
    assert.deepEqual(await tallyOf(projectId), { queued: 0, failed: cases, wrong: 0 })
  })

  test('includes rows that were locked, and those that become queued again', async () => {
    const { projectId, path } = await withMail(100)
    const id = await start(path)
    const setState = (state: string) =>
      database.query(
        `update mail.dispatch set state = $2 where (message_id, recipient_no) in (
           select message_id, recipient_no from mail.dispatch where project_id = $1 order by 1, 2 limit 5)`,
        [projectId, state],
      )
    await opened.as('mail').transaction(async (tx) => {
      await tx
        .selectFrom('mail.dispatch')
        .select('message_id')
        .where('project_id', '=', projectId)
        .orderBy('message_id')
        .orderBy('recipient_no')
        .limit(5)
        .forUpdate()
        .execute()
      await runDiscards(db, mailOf, never)
    })
    const { status, discarded } = await show(path, id)
    assert.deepEqual([status, discarded], ['running', 95])
    await setState('deferred')
    await runDiscards(db, mailOf, never)
    assert.equal((await show(path, id)).discarded, 100)
    assert.deepEqual(await tallyOf(projectId), { queued: 0, failed: 100, wrong: 0 })
  })
})
