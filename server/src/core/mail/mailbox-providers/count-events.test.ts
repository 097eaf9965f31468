import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { assertCountedByProvider } from '../../../testing/expectations/mailbox-provider-counters.ts'
import { mailRows, type TestMail } from '../../../testing/fixtures/mail-rows.ts'
import { countAllEvents, settlingMs } from '../../../testing/harness/count-events.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'
import { recordStatements } from '../../../testing/harness/statements.ts'
import { VirtualTime } from '../../../testing/harness/virtual-time.ts'
import { type RecipientEvent, writeRecipientEvents } from '../messages/events.ts'
import { countEvents } from './count-events.ts'

const database = await testDatabase()
/** Writes events at the real time. */
const mail = openDatabase(database, { poolSize: 20 }).as('mail')
/** Counts them. */
const time = new VirtualTime(database)
const { makeMail } = mailRows(database)

const providers = {
  'gmail.com': 'gmail',
  'outlook.com': 'microsoft',
  'hotmail.fr': 'microsoft',
  'yahoo.com': 'yahoo',
}
const domains = [...Object.keys(providers), 'Gmail.COM', 'example.com', 'gmail.example.com']

const eventOf = (
  { projectId, messageId, recipientNo, address: recipient }: TestMail,
  kind: string,
): RecipientEvent => ({
  ...{ projectId, messageId, recipientNo, type: `message.${kind}` as RecipientEvent['type'], recipient },
  ...{ status: null, diagnostic: null },
})

const write = (tx: Tx, one: TestMail, ...kinds: string[]) =>
  writeRecipientEvents(
    tx,
    kinds.map((kind) => eventOf(one, kind)),
  )

/** The counters that are not zero. */
async function countsOf(projectId: number): Promise<Record<string, Record<string, number>>> {
  const rows = await database.query<Record<string, unknown> & { mailbox_provider: string }>(
    `select mailbox_provider, sum(sent)::int as sent, sum(delivered)::int as delivered, sum(deferred)::int as deferred,
            sum(bounced)::int as bounced, sum(failed)::int as failed, sum(complained)::int as complained,
            sum(rejected)::int as rejected
       from mail.mailbox_provider_counters where project_id = $1 group by 1 order by 1`,
    [projectId],
  )
  return Object.fromEntries(
    rows.map(({ mailbox_provider, ...counts }) => [
      mailbox_provider,
      Object.fromEntries(Object.entries(counts as Record<string, number>).filter(([, count]) => count > 0)),
    ]),
  )
}

/** Runs of the chore, each a minute and a half later than the one before. */
async function runs(count: number): Promise<void> {
  for (let run = 0; run < count; run++) {
    await time.pass(1.5)
    await countEvents(time.mail)
  }
}

/** The rows and index entries of events and messages that the counting connection has read. */
async function rowsRead(): Promise<number> {
  await time.mail.readOne((tx) => sql`select pg_stat_force_next_flush()`.execute(tx))
  const [row] = await database.query<{ rows: number }>(
    `select (select sum(seq_tup_read) from pg_stat_user_tables where relname ~ '^(events|messages)_')::int
          + (select sum(idx_tup_read) from pg_stat_user_indexes where relname ~ '^(events|messages)_')::int as rows`,
  )
  return row?.rows ?? assert.fail()
}

let project = 100

beforeEach(async () => {
  await database.query(
    'truncate mail.events, mail.messages, mail.mailbox_provider_counters, mail.mailbox_provider_totals',
  )
  // The clock is set back.
  await database.query(
    'update mail.mailbox_provider_progress set counted_until = $1, counting_until = $1, closing_at = null',
    [new Date(0)],
  )
  await time.set(new Date())
  project++
})

describe('the counters by mailbox provider', () => {
  test('contain the outcomes of each recipient, by the operator of the mailbox', async () => {
    const [one, two, three] = [
      await makeMail(project, { address: 'Ada@Gmail.com' }),
      await makeMail(project, { address: 'ada@hotmail.co.uk' }),
      await makeMail(project, { address: '"a@gmail.com"@example.com' }),
    ]
    await mail.transaction(async (tx) => {
      await write(tx, one, 'accepted', 'sent', 'deferred', 'deferred', 'delivered', 'complained')
      await write(tx, two, 'accepted', 'sent', 'bounced')
      await write(tx, three, 'accepted', 'deferred', 'failed')
    })
    await runs(2)
    assert.deepEqual(await countsOf(project), {
      gmail: { sent: 1, delivered: 1, deferred: 2, complained: 1 },
      microsoft: { sent: 1, bounced: 1 },
      other: { deferred: 1, failed: 1, rejected: 1 },
    })
    await assertCountedByProvider(database, { ...providers, 'hotmail.co.uk': 'microsoft' })
  })

  test('do not contain the mail of test keys', async () => {
    const [one, two] = [await makeMail(project), await makeMail(project)]
    await database.query('update mail.messages set is_test = true where id = $1', [one.messageId])
    await mail.transaction((tx) => write(tx, one, 'accepted', 'sent', 'delivered'))
    await mail.transaction((tx) => write(tx, two, 'accepted', 'sent'))
    await runs(2)
    assert.deepEqual(await countsOf(project), { other: { sent: 1 } })
  })

  test('are complete after two runs, and a run without events changes nothing', async () => {
    const one = await makeMail(project)
    await mail.transaction((tx) => write(tx, one, 'sent'))
    await runs(1)
    assert.deepEqual(await countsOf(project), {})
    await runs(1)
    assert.deepEqual(await countsOf(project), { other: { sent: 1 } })
    await runs(3)
    assert.deepEqual(await countsOf(project), { other: { sent: 1 } })
  })

  test('contain an event that is committed after one with a larger id', async () => {
    const [early, late] = [await makeMail(project), await makeMail(project)]
    const waits = Promise.withResolvers<void>()
    const begins = Promise.withResolvers<void>()
    const slow = mail.transaction(async (tx) => {
      // No transaction id yet.
      await tx.selectFrom('mail.messages').select('id').limit(1).execute()
      begins.resolve()
      await waits.promise
      await write(tx, early, 'sent')
    })
    await begins.promise
    await mail.transaction((tx) => write(tx, late, 'sent', 'delivered'))
    await runs(3)
    assert.deepEqual(await countsOf(project), {}, 'nothing is counted before the slow transaction ends')
    waits.resolve()
    await slow
    await runs(2)
    assert.deepEqual(await countsOf(project), { other: { sent: 2, delivered: 1 } })
  })

  test('are not delayed by a transaction that began later', async () => {
    const one = await makeMail(project)
    await mail.transaction((tx) => write(tx, one, 'sent'))
    await runs(1)
    const waits = Promise.withResolvers<void>()
    const begins = Promise.withResolvers<void>()
    const later = mail.transaction(async (tx) => {
      await tx.selectFrom('mail.messages').select('id').limit(1).execute()
      begins.resolve()
      await waits.promise
    })
    await begins.promise
    await runs(1)
    assert.deepEqual(await countsOf(project), { other: { sent: 1 } })
    waits.resolve()
    await later
  })

  test('are written in steps of bounded size, which a later run continues', async () => {
    for (let n = 0; n < 3; n++) {
      const one = await makeMail(project + 1000 * n)
      await mail.transaction((tx) => write(tx, one, ...Array<string>(10).fill('deferred')))
    }
    await time.pass(1.5)
    await countEvents(time.mail)
    await time.pass(1.5)
    const counted = async () =>
      (
        await database.query<{ sum: number }>('select sum(deferred)::int from mail.mailbox_provider_totals')
      )[0]?.sum
    const limits = { eventsAtOnce: 4, steps: 3, settlingMs: 60_000 }
    await countEvents(time.mail, limits)
    assert.equal(await counted(), 8, 'one step closes, and two count')
    await countEvents(time.mail, limits)
    assert.equal(await counted(), 20)
    await countEvents(time.mail, limits)
    assert.equal(await counted(), 30)
    await assertCountedByProvider(database, providers)
  })

  test('are read by an index, a step at a time, while the tables have no statistics', async () => {
    await database.query(
      `insert into mail.messages (id, project_id, identity_id, from_address, recipient_count, size_bytes)
       select postern.uuid7(postern.now() - interval '1 minute'), $1::bigint, 1, 'news@example.com', 1, 100
         from generate_series(1, 1000)`,
      [project],
    )
    await database.query(
      `insert into mail.events (id, project_id, type, message_id, recipient_no, data)
       select postern.uuid7(postern.now()), project_id, type, id, 0, '{"recipient": "a@gmail.com"}'
         from mail.messages, unnest(array['message.accepted', 'message.sent', 'message.bounced']) as type`,
    )
    await runs(1)
    await time.pass(1.5)
    const before = await rowsRead()
    await countEvents(time.mail, { eventsAtOnce: 30, steps: 11, settlingMs: 60_000 })
    const read = (await rowsRead()) - before
    // Ten steps of 30 events: each, its message, and for a third of them the events of the message.
    assert.ok(read >= 300 && read <= 300 * 4, `${read} rows and index entries`)
  })

  test('cost eight statements per run without mail', async (t) => {
    await runs(2)
    await time.pass(1.5)
    const statements = recordStatements(t)
    await countEvents(time.mail)
    assert.equal(statements.count, 8)
  })

  test('are retained for 90 days', async () => {
    await database.query(
      `insert into mail.mailbox_provider_totals (hour_at, mailbox_provider, sent)
       select $1::timestamptz - ago * interval '1 day', 'gmail', ago from unnest(array[89, 91]) as ago`,
      [time.at],
    )
    await runs(1)
    const left = await database.query('select sent::int from mail.mailbox_provider_totals')
    assert.deepEqual(left, [{ sent: 89 }])
    const [table] = await database.query(
      "select retention_days from mail.partitioned_tables() where name = 'mailbox_provider_counters'",
    )
    assert.deepEqual(table, { retention_days: 90 })
  })
})

/** What happens to a recipient, in order. */
const lives = [
  ['sent', 'delivered'],
  ['sent', 'delivered', 'complained'],
  ['sent', 'deferred', 'deferred', 'delivered', 'bounced'],
  ['deferred', 'sent', 'bounced'],
  ['deferred', 'deferred', 'failed'],
  ['bounced'],
  ['sent', 'failed'],
]

class Killed extends Error {}

/** A worker that dies before or after each statement with some probability. After a write, the write is committed. */
function mortal(db: UnscopedDb, chance: Chance): Pick<UnscopedDb, 'read' | 'readOne' | 'writeOne'> {
  const step = async <T>(work: () => Promise<T>): Promise<T> => {
    if (chance.happens(0.1)) throw new Killed()
    const result = await work()
    if (chance.happens(0.1)) throw new Killed()
    return result
  }
  return {
    read: (work) => step(() => db.read(work)),
    readOne: (query) => step(() => db.readOne(query)),
    writeOne: (statement) => step(() => db.writeOne(statement)),
  }
}

/** The full form has 100,000 recipients. */
const recipientCount = Number(process.env['POSTERN_TEST_COUNTED'] ?? 300)

describe('random events', () => {
  test('are counted once by two workers that die at any step, however late they are committed', async (t) => {
    const limits = { eventsAtOnce: 7, steps: 6, settlingMs }
    let [isOver, killed, rolledBack] = [false, 0, 0]
    const workers = [new Chance(seed + 1), new Chance(seed + 2)].map(async (own) => {
      while (!isOver) {
        try {
          await countEvents(mortal(mail, own), limits)
        } catch (error) {
          if (!(error instanceof Killed)) throw error
          killed++
        }
        await sleep(own.below(20))
      }
    })
    const lane = async (no: number): Promise<void> => {
      const own = new Chance(seed + 100 + no)
      for (let made = 0; made < recipientCount / 10; made += 3) {
        const group = await Promise.all(
          [0, 1, 2].map(async (n) => {
            const address = `r${no}.${made + n}@${own.pick(domains)}`
            return { of: await makeMail(500 + own.below(5), { address }), life: [...own.pick(lives)] }
          }),
        )
        for (let left = group; left.length > 0; left = left.filter(({ life }) => life.length > 0)) {
          const chosen = own.some(1 + own.below(3), left)
          const isRolledBack = own.happens(0.1)
          const [before, after] = [own.below(own.happens(0.05) ? 2_000 : 40), own.below(20)]
          try {
            await mail.transaction(async (tx) => {
              await sleep(before)
              for (const { of, life } of chosen) await write(tx, of, life[0] ?? assert.fail())
              await sleep(after)
              if (isRolledBack) throw new Killed()
            })
            for (const { life } of chosen) life.shift()
          } catch (error) {
            if (!(error instanceof Killed)) throw error
            rolledBack++
          }
        }
      }
    }
    await Promise.all(Array.from({ length: 10 }, (_none, no) => lane(no)))
    isOver = true
    await Promise.all(workers)
    await countAllEvents(database, mail, limits)
    const [{ events } = { events: 0 }] = await database.query<{ events: number }>(
      'select count(*)::int as events from mail.events',
    )
    t.diagnostic(`${events} events, ${killed} deaths, ${rolledBack} transactions rolled back, seed ${seed}`)
    assert.ok(events > recipientCount && killed > 0 && rolledBack > 0)
    await assertCountedByProvider(database, providers)
  })
})
