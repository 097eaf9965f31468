import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sql } from 'kysely'
import { inDays, senders } from '../../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, type TestDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { type Claimed, ClaimQueue } from './claims.ts'
import { dropBodies } from './partitions.ts'

/**
 * Retention of message content: until the message is handed off to the MTA, and then for the configured
 * number of days.
 */
const today = new Date().toISOString().slice(0, 10)

/** Sets the database's clock to noon, `days` days from today, for connections opened afterwards. */
async function setClock(database: TestDatabase, days: number): Promise<void> {
  const [{ name, offset } = assert.fail()] = await database.query<{ name: string; offset: string }>(
    `select current_database() as name,
            ($1::date + $2 * interval '1 day' + interval '12 hours' - now() at time zone 'UTC')::text as offset`,
    [today, days],
  )
  await database.query(`alter database ${name} set postern.clock_offset = '${offset}'`)
}

async function setUp() {
  const database = await testDatabase()
  await setClock(database, 0)
  const api = await startApi(database)
  const { makeSender } = senders(api, database, await signedIn(api))
  return { database, sender: await makeSender() }
}

/** A connection with the mail role whose clock is set to `days` days from today. */
async function inTheFuture(database: TestDatabase, days: number) {
  await setClock(database, days)
  return openDatabase(database).as('mail')
}

const bodiesIn = async (database: TestDatabase, table: string): Promise<string[]> =>
  (await database.query<{ id: string }>(`select message_id as id from mail.${table} order by 1`)).map(
    ({ id }) => id,
  )

const handOver = (database: TestDatabase, id: string) =>
  database.query('delete from mail.dispatch where message_id = $1', [id])

/** Claims the ready messages and returns their content by message id. */
async function claimedContents(mail: Awaited<ReturnType<typeof inTheFuture>>): Promise<Map<string, string>> {
  const queue = new ClaimQueue(mail)
  await queue.sweep()
  await queue.refreshLanes()
  const claims = await queue.claim({ free: 100, freeLarge: 100, for: () => 100 })
  const contentOf = async (claimed: Claimed, content: Buffer | null) =>
    String(content ?? (await queue.contentOf(claimed)))
  return new Map(
    await Promise.all(
      claims.map(
        async ({ claimed, message }) =>
          [claimed.message_id, await contentOf(claimed, message.content)] as const,
      ),
    ),
  )
}

describe('bodies', () => {
  test('are deleted one day after the day of their message, unless the message is unsent', async () => {
    const { database, sender } = await setUp()
    const sent = await sender.send()
    const waiting = await sender.send({ text: 'It waits.' })
    const large = await sender.send({ text: 'x'.repeat(2 * 1024 * 1024) })
    const scheduled = await sender.send({ send_at: inDays(10) })
    await handOver(database, sent)

    let mail = await inTheFuture(database, 1)
    await dropBodies(mail, 24)
    assert.equal((await bodiesIn(database, 'bodies')).length, 4, 'too early')
    mail = await inTheFuture(database, 3)
    await dropBodies(mail, 72)
    assert.equal((await bodiesIn(database, 'bodies')).length, 4, 'retained longer')
    const done = await dropBodies(mail, 24)
    assert.equal(done.moved, 3)
    assert.equal(done.dropped.length, 2, 'that day and the next')
    assert.deepEqual(await bodiesIn(database, 'bodies'), [])
    assert.deepEqual(await bodiesIn(database, 'waiting_bodies'), [waiting, large, scheduled].sort())
    assert.deepEqual(await dropBodies(mail, 24), { moved: 0, dropped: [] }, 'once')

    const messages = await claimedContents(mail)
    assert.deepEqual([...messages.keys()].sort(), [waiting, large].sort())
    assert.match(messages.get(waiting) ?? '', /It waits\./)
    assert.ok((messages.get(large) ?? '').length > 2 * 1024 * 1024)
    await handOver(database, waiting)

    mail = await inTheFuture(database, 6)
    await dropBodies(mail, 24)
    assert.deepEqual(await bodiesIn(database, 'waiting_bodies'), [large, scheduled].sort())
    await handOver(database, large)

    mail = await inTheFuture(database, 11)
    await dropBodies(mail, 24)
    assert.deepEqual([...(await claimedContents(mail)).keys()], [scheduled])
    await handOver(database, scheduled)
    mail = await inTheFuture(database, 14)
    await dropBodies(mail, 24)
    assert.deepEqual(await bodiesIn(database, 'waiting_bodies'), [])
    const tables = await database.query(
      `select from pg_inherits where inhparent = 'mail.waiting_bodies'::regclass`,
    )
    assert.equal(tables.length, 0)
  })

  test('are moved in steps that are limited by rows and bytes', async () => {
    const { database, sender } = await setUp()
    for (let no = 0; no < 5; no++) await sender.send({ text: 'x'.repeat(1000) })
    const mail = await inTheFuture(database, 2)
    interface Step {
      part: string
      moved: number
      dropped: boolean | null
      last_shard: number
      last_message: string
    }
    let last: Step | undefined
    const step = async (rowsAtMost: number, bytesAtMost: number) => {
      const { rows } = await mail.transaction((tx) =>
        sql<Step>`
          select * from mail.drop_bodies(24, ${rowsAtMost}, ${bytesAtMost}, ${last?.part ?? null},
                                         ${last?.last_shard ?? null}::smallint, ${last?.last_message ?? null}::uuid)`.execute(
          tx,
        ),
      )
      last = rows[0]
      return last && [last.moved, last.dropped]
    }
    // The previous day has an empty partition.
    assert.deepEqual(await step(2, 1_000_000), [0, true])
    assert.deepEqual(await step(2, 1_000_000), [2, false])
    assert.deepEqual(await step(100, 1), [1, false], 'at least one')
    assert.deepEqual(await step(2, 1_000_000), [2, false])
    assert.deepEqual(await step(2, 1_000_000), [0, true])
    assert.equal(await step(2, 1_000_000), undefined)
    assert.equal((await bodiesIn(database, 'waiting_bodies')).length, 5)
    for (const sizes of ['null, 1, 1', '24, null, 1', '24, 1, null', '23, 1, 1'])
      await assert.rejects(
        database.query(`select * from mail.drop_bodies(${sizes}, null, null, null)`),
        /between 24 and 87840/,
      )
  })

  test('of many unsent messages are scanned once, regardless of earlier moves', async () => {
    const { database, sender } = await setUp()
    const id = await sender.send()
    await database.query(
      `with copy as (
         insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient, due_at)
         select postern.uuid7(postern.now()), 0, project_id, identity_id, provider, recipient, due_at
           from mail.dispatch, generate_series(1, 12000) where message_id = $1
         returning message_id, project_id)
       insert into mail.bodies (message_id, project_id, format, content)
       select message_id, project_id, 'json', '{}' from copy`,
      [id],
    )
    const mail = await inTheFuture(database, 3)
    const { moved } = await dropBodies(mail, 24)
    assert.equal(moved, 12_001)
    assert.deepEqual(await bodiesIn(database, 'bodies'), [])
    assert.equal((await bodiesIn(database, 'waiting_bodies')).length, 12_001)
  })

  test('are not deleted while their partition is being read, and do not block other transactions', async () => {
    const { database, sender } = await setUp()
    await handOver(database, await sender.send())
    const mail = await inTheFuture(database, 3)
    await mail.transaction(async (reader) => {
      await sql`select from mail.bodies`.execute(reader)
      assert.deepEqual((await dropBodies(mail, 24)).dropped, [])
      await sender.send()
    })
    assert.equal((await dropBodies(mail, 24)).dropped.length, 3)
  })
})
