import assert from 'node:assert/strict'
import { randomUUIDv7 } from 'node:crypto'
import { describe, test } from 'node:test'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { crashAt, stepsOfBoth } from '../../testing/harness/crash-points.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'
import { countSending } from '../mail/counters/counters.ts'
import { relayToControl } from './relay-to-control.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject } = fixtures(database, admin)
const { admin: db } = api.context.db
const { mail: mailDb } = api.context.cells.all[0]
const deps = { db, mailDb }

const count = (projectId: number, counts: object) =>
  mailDb.transaction((tx) => countSending(tx, [{ projectId, messageId: randomUUIDv7(), ...counts }]))

const show = async (id: number) => {
  const { body, headers } = await admin.get(`/projects/${id}`)
  const { bounced, failed, complained, reputation_score } = body
  return { bounced, failed, complained, reputation_score, etag: headers.get('etag') }
}

const waiting = async () => (await database.query('select from mail.outbox')).length
const statsOf = async (id: number) =>
  (
    await database.query<{ recount: string | null; listed: number }>(
      `select case when recount_at is null then null
                   when recount_at = date_trunc('day', recount_at, 'UTC') then 'tomorrow' else 'soon' end as recount,
              listing.reputation_score as listed
         from control.project_stats join control.project_listing as listing using (project_id)
        where project_id = $1`,
      [id],
    )
  )[0]

describe('relaying mail statistics to control', () => {
  test("updates a project's statistics and score, but not its version", async () => {
    const { id } = await makeProject()
    const before = await show(id)
    await count(id, { sent: 1000 })
    assert.equal((await relayToControl(deps)).relayed, 0, 'delivered mail is not relayed')
    await count(id, { bounced: 60 })
    await count(id, { failed: 3, complained: 1 })
    assert.equal((await relayToControl(deps)).relayed, 1)
    assert.deepEqual(await show(id), {
      ...{ bounced: 60, failed: 3, complained: 1, reputation_score: 50 },
      etag: before.etag,
    })
    assert.equal((await statsOf(id))?.listed, 50)
    assert.equal(await waiting(), 0)
  })

  test('adds the offset set by an administrator', async () => {
    const { id } = await makeProject()
    await admin.patch(`/projects/${id}`, { reputation_score: 70, reason: 'Watched' })
    await count(id, { sent: 1000, bounced: 60 })
    await relayToControl(deps)
    assert.equal((await show(id)).reputation_score, 20)
  })

  test("drops a deleted project's row", async () => {
    await count(999_999, { bounced: 1 })
    await relayToControl(deps)
    assert.equal(await waiting(), 0)
  })

  test('does not wait for a lock on the project, and applies the row afterwards', async () => {
    const [held, free] = [(await makeProject()).id, (await makeProject()).id]
    await count(held, { bounced: 5 })
    await count(free, { bounced: 7 })
    await db.transaction(async (tx) => {
      await tx
        .selectFrom('control.projects')
        .select('id')
        .where('id', '=', held)
        .forNoKeyUpdate()
        .executeTakeFirst()
      assert.equal((await relayToControl(deps)).relayed, 1)
      assert.equal((await show(free)).bounced, 7)
    })
    assert.equal(await waiting(), 1)
    assert.equal((await relayToControl(deps)).relayed, 1)
    assert.equal((await show(held)).bounced, 5)
    assert.equal(await waiting(), 0)
  })

  test('does not replace newer statistics with older ones, and keeps the row', async () => {
    const { id } = await makeProject()
    await count(id, { bounced: 1 })
    await relayToControl(deps)
    // Simulates a slow relay that read its totals earlier.
    await count(id, { bounced: 1 })
    await database.query(
      `update control.project_stats set counted_at = clock_timestamp() + interval '1 hour', bounced = 9
        where project_id = $1`,
      [id],
    )
    assert.equal((await relayToControl(deps)).relayed, 0)
    assert.equal((await show(id)).bounced, 9)
    assert.equal(await waiting(), 1)
    await database.query(`update control.project_stats set counted_at = '-infinity' where project_id = $1`, [
      id,
    ])
    await relayToControl(deps)
    assert.equal((await show(id)).bounced, 2)
  })

  test('loses nothing, regardless of where it crashes', async () => {
    const { id } = await makeProject()
    let bounced = 0
    for (const step of stepsOfBoth) {
      for (const moment of ['before', 'after'] as const) {
        await count(id, { bounced: 1 })
        bounced++
        await assert.rejects(relayToControl(crashAt(deps, step, moment)), /crashed/)
        await relayToControl(deps)
        assert.equal((await show(id)).bounced, bounced, `${moment} the ${step}`)
        assert.equal(await waiting(), 0)
      }
    }
  })

  test('produces correct totals without deadlocks under concurrent counts and edits', async () => {
    const projects = await Promise.all(Array.from({ length: 6 }, () => makeProject()))
    const pools = openDatabase(database, { poolSize: 8 })
    const busy = { db: pools.as('admin'), mailDb: pools.as('mail') }
    const deadlocks = await countDeadlocks()
    let isOver = false
    const tellers = Array.from({ length: 3 }, async () => {
      while (!isOver) await relayToControl(busy)
    })
    const editors = projects.map(async ({ id }) => {
      for (let n = 0; n < 15; n++) {
        const body = { name: `Name ${n}`, reputation_score: n, is_locked: n % 2 === 0, reason: 'Race' }
        const { status, text } = await admin.patch(`/projects/${id}`, body)
        assert.equal(status, 200, text)
      }
    })
    const counters = projects.map(async ({ id }) => {
      for (let n = 0; n < 100; n++) await count(id, { sent: 1, bounced: 1 })
    })
    await Promise.all([...editors, ...counters])
    isOver = true
    await Promise.all(tellers)
    while ((await waiting()) > 0) await relayToControl(deps)
    for (const { id } of projects) assert.equal((await show(id)).bounced, 100)
    assert.equal((await countDeadlocks()) - deadlocks, 0)
  })
})

describe('a score', () => {
  const moveClock = async (offset: string) => {
    await database.query(
      `do $$ begin execute format('alter database %I set postern.clock_offset = ${offset ? `''${offset}''` : "''''"}',
        current_database()); end $$`,
    )
    const moved = openDatabase(database)
    return { db: moved.as('admin'), mailDb: moved.as('mail') }
  }

  test('rises with delivered mail and over time, without a new outbox row', async () => {
    const { id } = await makeProject()
    await count(id, { sent: 1000, bounced: 60 })
    await relayToControl(deps)
    assert.deepEqual(await statsOf(id), { recount: 'soon', listed: 50 })
    await count(id, { sent: 1000 })
    assert.equal((await relayToControl(deps)).relayed, 0, 'the minute is not over')
    await relayToControl(await moveClock('2 minutes'))
    assert.deepEqual(await statsOf(id), { recount: 'soon', listed: 88 })
    await relayToControl(await moveClock('8 days'))
    assert.equal((await show(id)).reputation_score, 100)
    assert.equal((await show(id)).bounced, 60, 'what was, was')
    const [row] = await database.query<{ recount_at: Date | null }>(
      'select recount_at from control.project_stats where project_id = $1',
      [id],
    )
    assert.equal(row?.recount_at, null)
    await moveClock('')
  })

  test('falls when the minimum volume is reached', async () => {
    const { id } = await makeProject()
    await count(id, { sent: 30, bounced: 10 })
    await relayToControl(deps)
    assert.deepEqual(await statsOf(id), { recount: 'soon', listed: 100 })
    await count(id, { sent: 30 })
    await relayToControl(await moveClock('2 minutes'))
    assert.equal((await show(id)).reputation_score, 0)
    await moveClock('')
  })
})

async function countDeadlocks(): Promise<number> {
  const [row] = await database.query<{ deadlocks: string }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  )
  return Number(row?.deadlocks)
}
