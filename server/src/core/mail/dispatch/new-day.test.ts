import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { ampleByteLimits } from '../../../testing/fixtures/byte-limits.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { rowsReadBy } from '../../../testing/harness/rows-read.ts'
import { isSplit } from '../../../testing/harness/split-databases.ts'
import { applyFeedback, digestBytes, type Feedback } from '../feedback/feedback.ts'
import { recordAttempts } from './attempt-recorder.ts'
import type { Claimed } from './claims.sql.ts'

// At midnight, PostgreSQL has no statistics for the new day's partitions. Prepared statements keep the plans that they got
// while the partitions were small.

/** As many as a worker records together. */
const group = 100
const database = await testDatabase()
const mail = openDatabase(database, { poolSize: 1 }).as('mail')

/** Leased messages with one recipient each, without the rows that are not needed here. */
const leased = (count: number): Promise<Claimed[]> =>
  database.query<Claimed>(`
    with recipient as (
      insert into mail.recipients (message_id, recipient_no, project_id, kind, address, status)
      select postern.uuid7(postern.now()), 0, 7, 'to', 'a' || n || '@example.net', 'queued'
        from generate_series(1, ${count}) as n
      returning *
    )
    insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient, state, attempt,
                               leased_until)
    select message_id, recipient_no, project_id, 1, 'service', address, 'leased', 1, postern.now() + interval '1 hour'
      from recipient
    returning message_id, recipient_no, project_id::int, shard, identity_id::int, provider, is_large, recipient, attempt,
              postern.now() as first_attempt_at, due_at, postern.now() as claimed_at`)

const record = (claimed: readonly Claimed[]) =>
  mail.transaction((tx) =>
    recordAttempts(
      tx,
      claimed.map((one) => ({
        ...{ claimed: one, status: null, isTest: false },
        decision: {
          ...{ outcome: 'sent', status: 'sent', host: 'mta.example', queueId: '4bX', reply: '250 Ok' },
          retrySeconds: null,
        },
      })),
    ),
  )

const delivered = ({ shard, message_id: messageId, recipient_no: recipientNo }: Claimed): Feedback => ({
  ...{ shard, messageId, recipientNo, attempt: 1 },
  ...{ kind: 'delivered', status: '2.0.0', diagnostic: null, digest: randomBytes(digestBytes) },
})

describe('on a new day', { skip: isSplit }, () => {
  test('results and reports are written without reading the other recipients of the day', async (t) => {
    const rules = { suppressOn: new Set<string>(), name: 'rp.example', byteLimits: ampleByteLimits }
    const report = (claimed: readonly Claimed[]) =>
      mail.transaction((tx) => applyFeedback(tx, claimed.map(delivered), rules))
    for (let round = 0; round < 10; round++) {
      const few = await leased(group)
      await record(few)
      await report(few)
    }
    const others = 100 * group
    await leased(others)
    const claimed = await leased(group)
    for (const work of [record, report]) {
      const read = await rowsReadBy(database, [mail], () => work(claimed))
      const ofRecipients = Object.entries(read)
        .filter(([relation]) => relation.startsWith('recipients'))
        .reduce((sum, [, rows]) => sum + rows, 0)
      t.diagnostic(`${group} of ${others}: ${ofRecipients} rows read`)
      assert.ok(ofRecipients >= group, `${ofRecipients} rows read`)
      assert.ok(ofRecipients < others / 2, `${ofRecipients} rows read`)
    }
    const states = await database.query(
      `select status, count(*)::int from mail.recipients group by 1 order by 1`,
    )
    assert.deepEqual(states, [
      { status: 'delivered', count: 11 * group },
      { status: 'queued', count: others },
    ])
  })
})
