import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fixtures } from '../../../testing/fixtures/fixtures.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { fanOutAll } from '../../../testing/harness/fan-out.ts'
import { writeEvents } from '../messages/events.ts'
import { FanOut, fanOutLimits } from './fan-out.ts'

/** The fan-out of events to deliveries, outside the transaction that wrote the events. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeEndpoint } = fixtures(database, admin)
const { mail } = api.context.cells.all[0]
const newFanOut = () => new FanOut(mail, (error) => assert.ifError(error))

const write = (projectId: number, count = 1, endpointId?: number) =>
  mail.transaction((tx) =>
    writeEvents(
      tx,
      Array.from({ length: count }, () => ({
        ...{ projectId, type: 'message.sent' as const, messageId: null, recipientNo: null, data: {} },
        ...(endpointId !== undefined && { endpointId }),
      })),
    ),
  )

/** Inserts copies of an endpoint, ignoring all limits. */
const multiply = (endpointId: number, count: number) =>
  database.query(
    `insert into control.endpoints (project_id, name, url, events, encrypted_secret, secret_hint)
     select project_id, name, url, events, encrypted_secret, secret_hint
       from control.endpoints, generate_series(1, $2) where id = $1`,
    [endpointId, count],
  )

const countOf = async (table: string, projectId: number): Promise<number> => {
  const [row] = await database.query<{ count: number }>(
    `select count(*)::int as count from mail.${table} where project_id = $1`,
    [projectId],
  )
  return row?.count ?? assert.fail()
}

describe('an event', () => {
  test('is stored in two rows, regardless of the number of endpoints', async () => {
    const { id } = await makeProject()
    const { resource } = await makeEndpoint(id, { events: ['message.sent'] })
    await multiply(resource.id, 999)
    await write(id, 3)
    assert.deepEqual(
      await Promise.all(['events', 'fan_outs', 'deliveries', 'wakes'].map((table) => countOf(table, id))),
      [3, 3, 0, 0],
    )
    await database.query('delete from mail.fan_outs')
  })

  test('in a project without an active endpoint is stored in one row', async () => {
    const { id } = await makeProject()
    await makeEndpoint(id, { events: ['message.sent'], is_active: false })
    await write(id)
    assert.deepEqual([await countOf('events', id), await countOf('fan_outs', id)], [1, 0])
  })
})

describe('a fan-out', () => {
  test('inserts one delivery for each subscribed endpoint and for the endpoint that the event names', async () => {
    const [{ id }, other] = [await makeProject(), await makeProject()]
    const { resource: wants } = await makeEndpoint(id, { events: ['message.sent'] })
    const { resource: named } = await makeEndpoint(id, { events: ['message.bounced'] })
    await makeEndpoint(id, { events: ['message.bounced'] })
    await makeEndpoint(id, { events: ['message.sent'], is_active: false })
    const { resource: foreign } = await makeEndpoint(other.id, { events: ['message.sent'] })
    await write(id, 1, named.id)
    await write(id, 1, foreign.id)
    await fanOutAll(mail, database)
    const rows = await database.query<{ id: number; count: number }>(
      `select endpoint_id::int as id, count(*)::int as count from mail.deliveries
        where project_id = $1 group by 1 order by 1`,
      [id],
    )
    assert.deepEqual(rows, [
      { id: wants.id, count: 2 },
      { id: named.id, count: 1 },
    ])
    assert.equal(await countOf('deliveries', other.id), 0)
  })

  test('covers many endpoints in steps with a bounded number of rows and misses none', async () => {
    const { id } = await makeProject()
    const { resource } = await makeEndpoint(id, { events: ['message.sent'] })
    const endpoints = 2 * fanOutLimits.endpoints + 7
    await multiply(resource.id, endpoints - 1)
    const events = fanOutLimits.events + 5
    await write(id, events)
    const fanOut = newFanOut()
    const most = fanOutLimits.events * fanOutLimits.endpoints
    let before = 0
    while ((await fanOut.step()) > 0) {
      const now = await countOf('deliveries', id)
      assert.ok(now - before <= most, `${now - before} rows in one step`)
      before = now
    }
    assert.equal(before, events * endpoints)
    assert.equal(await countOf('fan_outs', id), 0)
  })

  test('continues where a crashed worker stopped, without duplicates', async () => {
    const { id } = await makeProject()
    const { resource } = await makeEndpoint(id, { events: ['message.sent'] })
    await multiply(resource.id, 2 * fanOutLimits.endpoints)
    await write(id, 3)
    await newFanOut().step()
    assert.equal(await countOf('deliveries', id), 3 * fanOutLimits.endpoints)
    await fanOutAll(mail, database)
    assert.equal(await countOf('deliveries', id), 3 * (2 * fanOutLimits.endpoints + 1))
  })

  test('serves every project in turn, regardless of how many events one of them has', async () => {
    const [busy, quiet] = [await makeProject(), await makeProject()]
    for (const { id } of [busy, quiet]) await makeEndpoint(id, { events: ['message.sent'] })
    await write(busy.id, 3 * fanOutLimits.events)
    await write(quiet.id)
    await newFanOut().step()
    assert.equal(await countOf('deliveries', quiet.id), 1)
    assert.equal(await countOf('deliveries', busy.id), fanOutLimits.events)
    await fanOutAll(mail, database)
  })

  test('that fails for one project does not affect others', async () => {
    const [bad, good] = [await makeProject(), await makeProject()]
    for (const { id } of [bad, good]) {
      await makeEndpoint(id, { events: ['message.sent'] })
      await write(id)
    }
    await database.query(
      `create function pg_temp_refuse() returns trigger language plpgsql as
         $$ begin if new.project_id = ${bad.id} then raise 'refused'; end if; return new; end $$`,
    )
    await database.query(
      'create trigger refuse before insert on mail.deliveries for each row execute function pg_temp_refuse()',
    )
    const failed: number[] = []
    await new FanOut(mail, (_, projectId) => void failed.push(projectId)).step()
    assert.deepEqual(failed, [bad.id])
    assert.equal(await countOf('deliveries', good.id), 1)
    assert.equal(await countOf('fan_outs', bad.id), 1, 'it is retried')
    await database.query('drop trigger refuse on mail.deliveries')
    await fanOutAll(mail, database)
    assert.equal(await countOf('deliveries', bad.id), 1)
  })

  test('for a project runs on one worker at a time, which preserves the order of events', async () => {
    const { id } = await makeProject()
    await makeEndpoint(id, { events: ['message.sent'] })
    await write(id, 2)
    const first = newFanOut()
    const second = newFanOut()
    const moved = await Promise.all([first.step(), second.step()])
    assert.equal(
      moved.reduce((sum, count) => sum + count),
      2,
    )
    assert.equal(await countOf('deliveries', id), 2)
  })
})
