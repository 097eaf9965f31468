import assert from 'node:assert/strict'
import { randomUUIDv7 } from 'node:crypto'
import { describe, test } from 'node:test'
import { sql } from 'kysely'
import { startApi } from '../../../testing/harness/api.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { relayToControl } from '../../outbox/relay-to-control.ts'
import { erasePerson } from '../audit/erasure.ts'
import { append, lockHead } from './activity.sql.ts'
import {
  type ActivityEntry,
  activityPage,
  attemptsRecordedPerHour,
  purgeActivity,
  recordAttempt,
  recordProjectActivity,
  recordUserActivity,
} from './activity.ts'
import { publishActivity } from './relay.ts'
import { verifyActivity } from './verify.ts'

const database = await testDatabase()
const opened = openDatabase(database)
const db = opened.as('admin')
const identity = opened.as('identity')

const entry = (change: Partial<ActivityEntry['change']> = {}): ActivityEntry => ({
  actor: { type: 'user', id: 7, email: 'ada@example.com', ip: '192.0.2.1', userAgent: 'curl' },
  requestId: randomUUIDv7(),
  operation: 'routing.edit',
  change: { resource: 'route', id: 3, before: null, after: { forward_to: 'bob@example.net' }, ...change },
})

let projects = 100
async function filled(rows: number): Promise<number> {
  const projectId = ++projects
  for (let no = 0; no < rows; no++)
    await db.transaction((tx) => recordProjectActivity(tx, projectId, entry()))
  return projectId
}
const list = (projectId: number) => db.read((tx) => activityPage(tx, 'project', projectId, {}))
const verify = () => verifyActivity(db)
const seqs = async (projectId: number) => (await list(projectId)).data.map(({ id }) => id)

/** Runs a statement with the triggers disabled, as an attacker with database access can. The caller reverts it. */
async function tampered(change: string, undo: string): Promise<string> {
  const run = (statement: string) =>
    database.query(
      `alter table control.project_activity disable trigger all; ${statement}; alter table control.project_activity enable trigger all`,
    )
  await run(change)
  const { ok, first_bad } = await verify()
  await run(undo)
  assert.equal(ok, false, change)
  assert.equal((await verify()).ok, true, undo)
  return first_bad?.problem ?? ''
}

describe('an activity chain', () => {
  test('numbers its rows without gaps under concurrent appends', async () => {
    const projectId = ++projects
    await Promise.all(
      Array.from({ length: 8 }, () => db.transaction((tx) => recordProjectActivity(tx, projectId, entry()))),
    )
    assert.deepEqual(await seqs(projectId), [8, 7, 6, 5, 4, 3, 2, 1])
    assert.deepEqual((await verify()).first_bad, null)
  })

  test("does not block another project's chain", async () => {
    const [mine, theirs] = [await filled(1), await filled(1)]
    await db.transaction(async (tx) => {
      await recordProjectActivity(tx, mine, entry())
      await db.transaction((other) => recordProjectActivity(other, theirs, entry()))
    })
    assert.deepEqual(await seqs(theirs), [2, 1])
  })

  test('detects altered, removed and replaced rows', async () => {
    const id = await filled(4)
    const row = `where project_id = ${id} and seq = 2`
    assert.match(
      await tampered(
        `update control.project_activity set operation = 'domains.edit' ${row}`,
        `update control.project_activity set operation = 'routing.edit' ${row}`,
      ),
      /Row 2 of the activity of project \d+ was altered/,
    )
    assert.match(
      await tampered(
        `create table public.kept as select * from control.project_activity ${row}; delete from control.project_activity ${row}`,
        'insert into control.project_activity select * from public.kept; drop table public.kept',
      ),
      /Row 2 .* is missing: the next one is row 3/,
    )
    assert.match(
      await tampered(
        `create table public.kept as select * from control.project_activity where project_id = ${id} and seq = 4;
         delete from control.project_activity where project_id = ${id} and seq = 4`,
        'insert into control.project_activity select * from public.kept; drop table public.kept',
      ),
      /Row 4 .* is missing: the chain was cut off here/,
    )
    assert.match(
      await tampered(
        `update control.project_activity_people set ip = '192.0.2.99' ${row} and part = 'actor'`,
        `update control.project_activity_people set ip = '192.0.2.1' ${row} and part = 'actor'`,
      ),
      /personal data "actor" was altered/,
    )
    assert.match(
      await tampered(
        `update control.project_activity_people set email = 'eve@example.net' ${row} and part = 'after.forward_to'`,
        `update control.project_activity_people set email = 'bob@example.net' ${row} and part = 'after.forward_to'`,
      ),
      /personal data "after.forward_to" was altered/,
    )
  })

  test('allows the database roles only to append to its end', async () => {
    const id = await filled(1)
    const customer = opened.asCustomer().forProject(id)
    const attempt = (statement: string) => customer.transaction((tx) => sql.raw(statement).execute(tx))
    for (const statement of [
      'delete from control.project_activity',
      `update control.project_activity set operation = 'x'`,
      'update control.project_activity_heads set seq = 9',
      'delete from control.project_activity_people',
    ]) {
      await assert.rejects(attempt(statement), /permission denied/, statement)
      const isErasure = statement.includes('people')
      if (!isErasure)
        await assert.rejects(
          db.transaction((tx) => sql.raw(statement).execute(tx)),
          /permission denied/,
          statement,
        )
    }
    const another = await filled(1)
    await assert.rejects(
      customer.transaction((tx) => recordProjectActivity(tx, another, entry())),
      /activity of project/,
    )
    const [last] = await database.query<{ row: object }>(
      'select to_jsonb(activity) as row from control.project_activity as activity where project_id = $1',
      [id],
    )
    await assert.rejects(
      attempt(`select control.append_project_activity('${JSON.stringify(last?.row)}', '[]')`),
      /does not follow/,
    )
    assert.deepEqual(await seqs(id), [1])
  })

  test('remains valid after the erasure of a person, and shows null instead of the address', async () => {
    const id = await filled(2)
    const address = 'carol@example.net'
    const change = { before: { forward_to: address }, after: null }
    await db.transaction((tx) => recordProjectActivity(tx, id, entry(change)))
    assert.deepEqual((await list(id)).data[0]?.before, { forward_to: address })
    const chain = await database.query(
      'select activity::text from control.project_activity as activity where project_id = $1',
      [id],
    )
    assert.ok(!JSON.stringify(chain).includes('carol'))
    const before = await verify()
    const erased = await db.transaction((tx) =>
      erasePerson(tx, { email: address, requestId: randomUUIDv7(), reason: 'asked for' }),
    )
    assert.equal(erased, 1)
    assert.deepEqual((await list(id)).data[0]?.before, { forward_to: null })
    const after = await verify()
    assert.deepEqual([after.ok, after.erased], [true, before.erased + 1])
  })

  test('can be verified from its oldest remaining row after a purge', async () => {
    const id = await filled(5)
    await database.query(
      `alter table control.project_activity disable trigger all;
       update control.project_activity set at = at - interval '1 year' where project_id = ${id} and seq <= 3;
       alter table control.project_activity enable trigger all`,
    )
    const before = (await list(id)).data
    assert.equal(await db.transaction(purgeActivity('project', 300)), 3)
    assert.equal(await db.transaction(purgeActivity('project', 300)), 0)
    assert.deepEqual((await list(id)).data, before.slice(0, 2))
    const left = await database.query(
      'select distinct seq::int from control.project_activity_people where project_id = $1 order by 1',
      [id],
    )
    assert.deepEqual(left, [{ seq: 4 }, { seq: 5 }])
    assert.deepEqual((await verify()).first_bad, null)
    await db.transaction((tx) => recordProjectActivity(tx, id, entry()))
    assert.deepEqual((await verify()).first_bad, null)
    const problem = await tampered(
      `create table public.kept as select * from control.project_activity where project_id = ${id} and seq = 4;
       delete from control.project_activity where project_id = ${id} and seq = 4`,
      'insert into control.project_activity select * from public.kept; drop table public.kept',
    )
    assert.match(problem, /Row 4 .* is missing/)
  })

  test('is truncated at its beginning in bounded batches when it is too long', async () => {
    const id = await filled(20)
    const purge = (atMost: number) =>
      database.query<{ purged: number }>(
        `select control.purge_activity('project', interval '100 years', 10, ${atMost}) as purged`,
      )
    assert.deepEqual(await purge(4), [{ purged: 4 }])
    assert.deepEqual((await seqs(id)).at(-1), 5)
    await purge(100)
    assert.deepEqual(await seqs(id), [20, 19, 18, 17, 16, 15, 14, 13, 12, 11])
    assert.deepEqual((await verify()).first_bad, null)
  })
})

describe('sign-in attempts', () => {
  test('are recorded up to the hourly limit, and the next hour records how many were omitted', async () => {
    const userId = 4711
    const attempt = () => identity.transaction((tx) => recordAttempt(tx, userId, entry({ after: {} })))
    for (let no = 0; no < attemptsRecordedPerHour + 15; no++) await attempt()
    const rows = () => identity.read((tx) => activityPage(tx, 'user', userId, {}))
    assert.equal((await rows()).data.length, attemptsRecordedPerHour)
    await database.query(
      `update control.user_activity_heads set attempts_hour = attempts_hour - interval '1 hour' where user_id = ${userId}`,
    )
    await attempt()
    const { data } = await rows()
    assert.equal(data.length, attemptsRecordedPerHour + 1)
    assert.deepEqual(data[0]?.after, { attempts_not_recorded_before: 15 })
    await identity.transaction((tx) =>
      recordUserActivity(tx, userId, { ...entry(), operation: 'auth.sign-in' }),
    )
    assert.equal((await rows()).data.length, attemptsRecordedPerHour + 2, 'actions of the user do not count')
    assert.deepEqual((await verify()).first_bad, null)
  })
})

describe('changes on the mail side', async () => {
  const api = await startApi(database)
  const { mail: mailDb } = api.context.cells.all[0]

  test('are appended once, regardless of how often they are relayed', async () => {
    const id = ++projects
    await mailDb.transaction((tx) => publishActivity(tx, id, entry()))
    const relayed = await database.query('select * from mail.outbox where project_id = $1', [id])
    await relayToControl({ db, mailDb })
    assert.deepEqual(await seqs(id), [1])
    // A process that crashes between the two transactions leaves the row in the outbox.
    const [row] = relayed as { topic: string; payload: object }[]
    await database.query('insert into mail.outbox (project_id, topic, payload) values ($1, $2, $3)', [
      id,
      row?.topic,
      JSON.stringify(row?.payload),
    ])
    await relayToControl({ db, mailDb })
    assert.deepEqual(await seqs(id), [1])
    assert.deepEqual(await database.query('select from mail.outbox where project_id = $1', [id]), [])
    assert.deepEqual((await verify()).first_bad, null)
  })
})

test("one project's transaction cannot write another project's or user's personal data", async () => {
  const [mine, theirs] = [++projects, await filled(1)]
  const forged = { part: 'after.forward_to', salt: `\\x${'00'.repeat(16)}`, email: 'forged@example.net' }
  await database.query(
    `delete from control.project_activity_people where project_id = $1 and part <> 'actor'`,
    [theirs],
  )
  const customer = opened.asCustomer().forProject(mine)
  await customer.transaction(async (tx) => {
    const { seq, hash, at } = await lockHead(tx, 'project', mine)
    const row = {
      ...{ project_id: mine, seq: seq + 1, at, actor_type: 'system', actor_digest: `\\x${hash}` },
      ...{ request_id: randomUUIDv7(), operation: 'x', resource_type: 'x' },
      ...{ prev_hash: `\\x${hash}`, hash: `\\x${'11'.repeat(32)}` },
    }
    await append(tx, 'project', row, [{ ...forged, project_id: theirs, seq: 1 }])
  })
  const beside = await database.query(
    'select project_id::int from control.project_activity_people where email = $1',
    [forged.email],
  )
  assert.deepEqual(beside, [{ project_id: mine }])
  await assert.rejects(
    customer.transaction((tx) => lockHead(tx, 'project', theirs)),
    /activity of project/,
  )
  for (const table of ['project_activity_people', 'project_activity', 'project_activity_heads'])
    await database.query(`delete from control.${table} where project_id = $1`, [mine])
})

test('a user agent of any length is stored in a few hundred octets', async () => {
  const projectId = ++projects
  const { actor, ...rest } = entry()
  const long = { ...rest, actor: { ...actor, userAgent: 'x'.repeat(15_000) } }
  await db.transaction((tx) => recordProjectActivity(tx, projectId, long))
  assert.equal((await list(projectId)).data[0]?.actor.user_agent, 'x'.repeat(512))
  assert.equal((await verify()).ok, true)
})
