import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sql } from 'kysely'
import type { ReadTx, Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { ampleByteLimits } from '../../../testing/fixtures/byte-limits.ts'
import { fixtures } from '../../../testing/fixtures/fixtures.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { Acceptance } from '../messages/acceptance.ts'
import { readDraft } from '../messages/draft.ts'
import { recordAttempts } from './attempt-recorder.ts'
import { claimRows, findQueuedMessages } from './claims.sql.ts'
import { ClaimQueue } from './claims.ts'
import { findSendable } from './lanes.sql.ts'

/** Costs that must not grow with the number of days and projects. bench/README.md has the measurements. */
const database = await testDatabase()
const api = await startApi(database)
const { makeProject, makeDomain } = fixtures(database, await signedIn(api))
const mail = openDatabase(database).as('mail')

/** A claim queue and the number of transactions and single-statement reads it has run. */
function counted() {
  const counts = { transactions: 0, glances: 0 }
  const db: UnscopedDb = {
    transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
      counts.transactions++
      return mail.transaction(work)
    },
    dryRun: (work) => mail.dryRun(work),
    read: (work) => mail.read(work),
    writeOne: (statement) => mail.writeOne(statement),
    readOne<T>(query: (tx: ReadTx) => Promise<T>): Promise<T> {
      counts.glances++
      return mail.readOne(query)
    },
  }
  return { counts, queue: new ClaimQueue(db) }
}

async function send(projects: number): Promise<void> {
  const acceptance = new Acceptance(mail, ['service'], ampleByteLimits)
  for (let count = 0; count < projects; count++) {
    const { id } = await makeProject({})
    const { name } = await makeDomain(id, { mta_provider: 'service', status: 'verified' })
    const draft = readDraft({ from: `a@${name}`, to: ['b@example.net'], subject: 's', text: 't' }, Date.now())
    await acceptance.accept({ sender: { projectId: id, apiKey: null, userId: 1 }, mails: [draft] })
  }
}

/** A statement locks every partition in its plan. */
async function partitionsLocked(tx: ReadTx, table: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(distinct relation)::int as count from pg_locks
      join pg_inherits on inhrelid = relation and inhparent = ${`mail.${table}`}::regclass
     where pid = pg_backend_pid()`.execute(tx)
  return rows[0]?.count ?? Number.NaN
}

describe('with queued mail from several projects', () => {
  test('sweep and expiry each need one statement and no transaction', async () => {
    await send(3)
    const { counts, queue } = counted()
    await queue.sweep()
    await queue.expire()
    assert.deepEqual(counts, { transactions: 0, glances: 2 })
  })

  test('mail is claimed, read and recorded without scanning other days', async () => {
    await mail.transaction(async (tx) => {
      const lanes = await findSendable(tx, 10)
      const round = lanes.map(({ oldest, ...lane }) => ({ ...lane, watermark: oldest, most: 1 }))
      const claimed = await claimRows(tx, round, { limit: 10, leaseSeconds: 60 })
      assert.equal(claimed.length, 3)
      const messages = await findQueuedMessages(tx, claimed)
      assert.equal(messages.size, 3)
      assert.equal(await partitionsLocked(tx, 'messages'), 1)
      assert.equal(await partitionsLocked(tx, 'bodies'), 1)
      const decision = {
        outcome: 'sent',
        status: 'sent',
        host: 'mta.example',
        queueId: '4bX',
        reply: '250 Ok',
      } as const
      await recordAttempts(
        tx,
        claimed.map((one) => ({
          ...{ claimed: one, status: null, isTest: false },
          decision: { ...decision, retrySeconds: null },
        })),
      )
      assert.equal(await partitionsLocked(tx, 'attempts'), 1)
    })
    const left = await database.query(`select from mail.recipients where status <> 'sent'`)
    assert.equal(left.length, 0)
  })
})
