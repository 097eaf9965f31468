import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { mailRows, type TestMail } from '../../../testing/fixtures/mail-rows.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { feedbackRules } from '../../../testing/harness/feedback.ts'
import { applyFeedback, type FeedbackKind } from '../feedback/feedback.ts'
import { recordAttempts } from './attempt-recorder.ts'
import type { Claimed } from './claims.sql.ts'
import { type ResultKey, ResultPublisher } from './results.ts'
import { decideRetry } from './retry-policy.ts'

/**
 * An attempt's result is committed in its own transaction; its events, counters and suppressions are written
 * later, exactly once.
 */
const database = await testDatabase()
const db = openDatabase(database, { poolSize: 8 }).as('mail')
const { makeMail, stateOf, countsOf } = mailRows(database)
const suppressOn = new Set(['5.1.1'])
const errors: unknown[] = []
const newPublisher = () =>
  new ResultPublisher(db, { suppressOn, onError: (error) => void errors.push(error) })

let projects = 7000

const taken = { kind: 'sent', host: 'mta.example', queueId: '4bX', reply: '250 queued' } as const
const refused = {
  kind: 'refused',
  isPermanent: true,
  status: '5.1.1',
  host: 'mta.example',
  reply: '550 5.1.1 No such user',
} as const

async function record(mail: TestMail, handover: typeof taken | typeof refused): Promise<ResultKey[]> {
  const now = new Date()
  const claimed: Claimed = {
    ...{ message_id: mail.messageId, recipient_no: 0, project_id: mail.projectId, shard: mail.shard },
    ...{ identity_id: 1, provider: 'service', is_large: false, recipient: mail.address, attempt: 1 },
    ...{ first_attempt_at: now, due_at: now, claimed_at: now },
  }
  const status = handover.kind === 'refused' ? handover.status : null
  const ended = { claimed, decision: decideRetry(handover, claimed), status, isTest: false }
  return db.transaction((tx) => recordAttempts(tx, [ended]))
}

const leased = (projectId = ++projects) => makeMail(projectId, { status: 'queued', dispatch: 'leased' })

async function publish(keys: readonly ResultKey[], publisher = newPublisher()): Promise<void> {
  publisher.publish(keys)
  await publisher.settled()
}

const eventsOf = async (mail: TestMail) => (await stateOf(mail)).events.map(({ type }) => type)

const hear = (mail: TestMail, kind: FeedbackKind, no: number) => {
  const { shard, messageId, recipientNo } = mail
  const digest = Buffer.alloc(16, `${no} ${messageId}`)
  const feedback = { shard, messageId, recipientNo, attempt: 1, kind, status: null, diagnostic: null, digest }
  return db.transaction(async (tx) => (await applyFeedback(tx, [feedback], feedbackRules))[0])
}

describe('a result', () => {
  test('is committed with the end of the attempt, before its event and count', async () => {
    const mail = await leased()
    const keys = await record(mail, taken)
    assert.equal(keys.length, 1)
    const { status, dispatch, events } = await stateOf(mail)
    assert.deepEqual({ status, dispatch, events }, { status: 'sent', dispatch: null, events: [] })
    assert.deepEqual(await countsOf(mail.projectId), {})
    await publish(keys)
    assert.deepEqual(await eventsOf(mail), ['message.sent'])
    assert.deepEqual(await countsOf(mail.projectId), { sent: 1 })
  })

  test('for a bounce suppresses the address', async () => {
    const mail = await leased()
    await publish(await record(mail, refused))
    assert.deepEqual(await eventsOf(mail), ['message.bounced'])
    const rows = await database.query('select reason from mail.suppressions where project_id = $1', [
      mail.projectId,
    ])
    assert.deepEqual(rows, [{ reason: 'bounce' }])
  })

  test('is published once by concurrent publishers', async () => {
    const mails = await Promise.all(Array.from({ length: 20 }, () => leased(projects + 1)))
    projects++
    const keys = (await Promise.all(mails.map((mail) => record(mail, taken)))).flat()
    await Promise.all(Array.from({ length: 4 }, () => publish(keys)))
    for (const mail of mails) assert.deepEqual(await eventsOf(mail), ['message.sent'])
    assert.deepEqual(await countsOf(projects), { sent: 20 })
  })

  test('that a worker did not publish is published by another worker after its lease expires', async () => {
    const mail = await leased()
    await record(mail, taken)
    const publisher = newPublisher()
    await publisher.sweep()
    await publisher.settled()
    assert.deepEqual(await eventsOf(mail), [], 'the recording worker may still publish it')
    await database.query(`update mail.attempt_results set due_at = due_at - interval '10 seconds'`)
    await publisher.sweep()
    await publisher.settled()
    assert.deepEqual(await eventsOf(mail), ['message.sent'])
  })

  test('that cannot be published is retried and does not block others', async () => {
    const [bad, good] = [await leased(), await leased()]
    await database.query(
      `create function refuse_counts() returns trigger language plpgsql as
         $$ begin if new.project_id = ${bad.projectId} then raise 'refused'; end if; return new; end $$`,
    )
    await database.query(
      'create trigger refuse before insert on mail.daily_counters for each row execute function refuse_counts()',
    )
    const keys = [...(await record(bad, taken)), ...(await record(good, taken))]
    await publish(keys)
    assert.deepEqual([await eventsOf(bad), await eventsOf(good)], [[], ['message.sent']])
    assert.equal((await stateOf(bad)).status, 'sent', 'the hand-over is recorded regardless')
    assert.match(String(errors.at(-1)), /refused/)
    await database.query('drop trigger refuse on mail.daily_counters')
    await database.query(`update mail.attempt_results set due_at = due_at - interval '10 seconds'`)
    const publisher = newPublisher()
    await publisher.sweep()
    await publisher.settled()
    assert.deepEqual(await eventsOf(bad), ['message.sent'])
  })
})

describe('a report that arrives before the result is published', () => {
  test('publishes the result first and leaves nothing for the worker', async () => {
    const mail = await leased()
    const keys = await record(mail, taken)
    assert.equal(await hear(mail, 'delivered', 1), 'applied')
    assert.deepEqual(await eventsOf(mail), ['message.sent', 'message.delivered'])
    await publish(keys)
    assert.deepEqual(await eventsOf(mail), ['message.sent', 'message.delivered'])
    assert.deepEqual(await countsOf(mail.projectId), { sent: 1, delivered: 1 })
  })

  test('publishes each event once when it runs concurrently with the worker', async () => {
    for (let round = 0; round < 20; round++) {
      const mail = await leased()
      const keys = await record(mail, taken)
      await Promise.all([publish(keys), hear(mail, 'delivered', round)])
      // A publisher that skipped the locked result leaves it for the report to publish.
      assert.deepEqual((await eventsOf(mail)).toSorted(), ['message.delivered', 'message.sent'])
      assert.deepEqual(await countsOf(mail.projectId), { sent: 1, delivered: 1 })
    }
  })
})
