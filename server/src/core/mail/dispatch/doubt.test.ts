import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import { mailRows, type TestMail } from '../../../testing/fixtures/mail-rows.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { feedbackRules } from '../../../testing/harness/feedback.ts'
import { eventually, patienceMs } from '../../../testing/harness/waiting.ts'
import { startPostgresProxy } from '../../../testing/peers/postgres-proxy.ts'
import { applyFeedback, type FeedbackKind } from '../feedback/feedback.ts'
import { AttemptRecorder, type EndedAttempt, recordAttempts } from './attempt-recorder.ts'
import { AttemptStarter } from './attempt-starter.ts'
import { type Claimed, ClaimQueue } from './claims.ts'
import { ResultPublisher } from './results.ts'
import { decideRetry } from './retry-policy.ts'

/**
 * Mail with an unknown outcome: the attempt is recorded before the call, the message is never sent twice, and
 * a report or a timeout determines its final status.
 */
const database = await testDatabase()
const db = openDatabase(database, { poolSize: 8 }).as('mail')
const { makeMail, stateOf, countsOf } = mailRows(database)
const starter = new AttemptStarter(db)
const queue = new ClaimQueue(db)
const publisher = new ResultPublisher(db, { suppressOn: new Set(), onError: assert.ifError })
const withinSeconds = 41

let projects = 5000

interface Leased {
  mail: TestMail
  claimed: Claimed
}

async function lease({ seconds = 60, attempt = 1 } = {}): Promise<Leased> {
  const mail = await makeMail(++projects, { status: 'queued', dispatch: 'leased', attempt })
  const [row] = await database.query<{ due_at: Date }>(
    `update mail.dispatch set provider = 'ses', leased_until = postern.now() + $2 * interval '1 second'
      where message_id = $1 returning due_at`,
    [mail.messageId, seconds],
  )
  const at = row?.due_at ?? assert.fail()
  const claimed: Claimed = {
    ...{ message_id: mail.messageId, recipient_no: 0, project_id: mail.projectId, shard: mail.shard },
    ...{ identity_id: 1, provider: 'ses', is_large: false, recipient: mail.address, attempt },
    ...{ first_attempt_at: at, due_at: at, claimed_at: at },
  }
  return { mail, claimed }
}

const begun = async (options: Parameters<typeof lease>[0] = {}): Promise<Leased> => {
  const leased = await lease(options)
  assert.equal(await starter.start(leased.claimed, withinSeconds), true)
  return leased
}

const lost = { kind: 'unknown', host: 'ses', detail: 'the connection to SES was lost (ECONNRESET)' } as const
const taken = { kind: 'sent', host: 'ses', queueId: '0102', reply: 'Accepted by SES as 0102.' } as const
const throttled = { kind: 'unreachable', host: 'ses', detail: 'too many', mayBeSent: false } as const

const finish = async ({ claimed }: Leased, handover: typeof lost | typeof taken | typeof throttled) => {
  const ended: EndedAttempt = {
    claimed,
    decision: decideRetry(handover, claimed),
    status: null,
    isTest: false,
  }
  publisher.publish(await db.transaction((tx) => recordAttempts(tx, [ended])))
  await publisher.settled()
}

async function sweep(): Promise<void> {
  const { hasResults } = await queue.sweep()
  if (hasResults) await publisher.sweep()
  await publisher.settled()
}

/** Moves this message's timestamps into the past. */
const later = ({ mail }: Leased, interval: string) =>
  database.query(
    `update mail.dispatch set leased_until = leased_until - $2::interval, due_at = due_at - $2::interval
      where message_id = $1`,
    [mail.messageId, interval],
  )

const hear = ({ mail }: Leased, kind: FeedbackKind, digest: number) => {
  const { shard, messageId, recipientNo } = mail
  const feedback = {
    ...{ shard, messageId, recipientNo, attempt: 1, kind, status: null, diagnostic: null },
    digest: Buffer.alloc(16, digest),
  }
  return db.transaction(async (tx) => (await applyFeedback(tx, [feedback], feedbackRules))[0])
}

async function stateFor({ mail }: Leased) {
  const { status, dispatch, events } = await stateOf(mail)
  const attempts = await database.query<{ outcome: string }>(
    'select outcome from mail.attempts where message_id = $1 order by attempt',
    [mail.messageId],
  )
  return {
    ...{ status, dispatch, events: events.map(({ type }) => type.replace('message.', '')) },
    attempts: attempts.map(({ outcome }) => outcome),
  }
}

describe('an attempt that is recorded before the call', () => {
  test('is committed before start resolves, with many attempts per transaction', async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => lease()))
    const answers = await Promise.all(all.map(({ claimed }) => starter.start(claimed, withinSeconds)))
    assert.ok(answers.every(Boolean))
    for (const one of all) assert.deepEqual((await stateFor(one)).attempts, ['begun'])
  })

  test('is not started if the lease is too short, expired, already used, or belongs to another attempt', async () => {
    const short = await lease({ seconds: withinSeconds - 1 })
    const over = await lease({ seconds: -1 })
    const other = await lease({ attempt: 3 })
    const again = await begun()
    const answers = await Promise.all([
      starter.start(short.claimed, withinSeconds),
      starter.start(over.claimed, withinSeconds),
      starter.start({ ...other.claimed, attempt: 2 }, withinSeconds),
      starter.start(again.claimed, withinSeconds),
    ])
    assert.deepEqual(answers, [false, false, false, false])
    for (const one of [short, over, other]) assert.deepEqual((await stateFor(one)).attempts, [])
  })

  test("gets its outcome from the provider's response", async () => {
    const one = await begun()
    await finish(one, taken)
    const state = { status: 'sent', dispatch: null, events: ['sent'], attempts: ['sent'] }
    assert.deepEqual(await stateFor(one), state)
    const two = await begun()
    await finish(two, throttled)
    const after = { status: 'queued', dispatch: 'deferred', events: [], attempts: ['unreachable'] }
    assert.deepEqual(await stateFor(two), after)
  })
})

describe('an expired lease', () => {
  test('makes the message ready again unless an attempt was recorded', async () => {
    const [idle, called] = [await lease(), await begun()]
    for (const one of [idle, called]) await later(one, '2 minutes')
    const [before] = await database.query<{ now: string }>('select postern.now()::text as now')
    await queue.sweep()
    assert.equal((await stateFor(idle)).dispatch, 'ready')
    assert.deepEqual(await stateFor(called), {
      ...{ status: 'queued', dispatch: 'awaiting', events: [], attempts: ['begun'] },
    })
    const [row] = await database.query(
      `select leased_until is null as is_released,
              due_at between $2::timestamptz + interval '1 hour' and postern.now() + interval '1 hour' as is_in_an_hour
         from mail.dispatch where message_id = $1`,
      [called.mail.messageId, before?.now],
    )
    assert.deepEqual(row, { is_released: true, is_in_an_hour: true })
  })

  test('still lets the first worker record its result if no other worker can claim the message', async () => {
    const [one, two] = [await begun(), await begun()]
    for (const each of [one, two]) await later(each, '2 minutes')
    await queue.sweep()
    await finish(one, taken)
    await finish(two, throttled)
    assert.deepEqual([(await stateFor(one)).dispatch, (await stateFor(one)).status], [null, 'sent'])
    assert.deepEqual([(await stateFor(two)).dispatch, (await stateFor(two)).status], ['deferred', 'queued'])
  })
})

describe('a result that cannot be recorded', () => {
  test('is retried for as long as no other worker can claim the message', async () => {
    const proxy = await startPostgresProxy(database.url)
    const away = openDatabase({ ...database, url: proxy.urlOf(database.url) }).as('mail')
    const faults: { error: unknown; lost: number }[] = []
    const recorder = new AttemptRecorder(away, {
      onRecorded: () => {},
      onError: (error, lost) => void faults.push({ error, lost }),
    })
    const [given, kept] = [await begun(), await begun()]
    const endedOf = ({ claimed }: Leased): EndedAttempt => ({
      ...{ claimed, decision: decideRetry(throttled, claimed), status: null, isTest: false },
    })
    proxy.hooks.onStatement = () => {
      void proxy.cut()
      return true
    }
    const writing = recorder.record(endedOf(kept), 10 * patienceMs)
    await recorder.record(endedOf(given), 300)
    assert.equal(faults.at(-1)?.lost, 1, inspect(faults))
    await later(kept, '2 minutes')
    // An aborted transaction holds the row lock until the server notices the disconnect.
    await eventually('the lease has expired', async () => {
      await queue.sweep()
      return (await stateFor(kept)).dispatch !== 'leased'
    })
    assert.equal((await stateFor(kept)).dispatch, 'awaiting')
    delete proxy.hooks.onStatement
    await writing
    assert.deepEqual(
      [(await stateFor(kept)).dispatch, (await stateFor(given)).dispatch],
      ['deferred', 'leased'],
    )
  })
})

describe('mail that a provider may have accepted', () => {
  const doubtful = async (): Promise<Leased> => {
    const one = await begun()
    await finish(one, lost)
    assert.deepEqual(await stateFor(one), {
      ...{ status: 'queued', dispatch: 'awaiting', events: [], attempts: ['unknown'] },
    })
    return one
  }

  test('is not claimed, recovered or promoted', async () => {
    const one = await doubtful()
    await later(one, '59 minutes')
    await queue.sweep()
    await queue.expire()
    await queue.refreshLanes()
    assert.deepEqual(await queue.claim({ free: 1000, freeLarge: 1000, for: () => 1000 }), [])
    assert.equal((await stateFor(one)).dispatch, 'awaiting')
  })

  test('fails after an hour without a report, and its reply states that it may have been sent', async () => {
    const one = await doubtful()
    await later(one, '61 minutes')
    await sweep()
    const { status, dispatch, events, reply } = await stateOf(one.mail)
    assert.deepEqual([status, dispatch, events.length], ['failed', null, 1])
    assert.equal(events[0]?.type, 'message.failed')
    assert.match(String(events[0]?.data['diagnostic']), /may have been sent/)
    assert.match(reply ?? '', /may have been sent/)
    assert.deepEqual(await countsOf(one.mail.projectId), { failed: 1 })
    await sweep()
    assert.equal((await stateOf(one.mail)).events.length, 1)
  })

  const words: [FeedbackKind, string, string[]][] = [
    ['sent', 'sent', ['sent']],
    ['delivered', 'delivered', ['sent', 'delivered']],
    ['deferred', 'deferred', ['sent', 'deferred']],
    ['bounced', 'bounced', ['sent', 'bounced']],
    ['failed', 'failed', ['sent', 'failed']],
    ['complained', 'complained', ['sent', 'complained']],
  ]
  for (const [kind, status, events] of words) {
    test(`is completed by the provider's "${kind}" report`, async () => {
      const one = await doubtful()
      await hear(one, kind, 1)
      assert.deepEqual(await stateFor(one), { status, dispatch: null, events, attempts: ['sent'] })
      assert.equal((await countsOf(one.mail.projectId))['sent'], 1)
      await later(one, '61 minutes')
      await queue.sweep()
      assert.deepEqual((await stateFor(one)).status, status)
    })

    test(`is published once when a "${kind}" report precedes the worker's result`, async () => {
      const one = await begun()
      await hear(one, kind, 1)
      await finish(one, taken)
      assert.deepEqual(await stateFor(one), { status, dispatch: null, events, attempts: ['sent'] })
      assert.equal((await countsOf(one.mail.projectId))['sent'], 1)
    })
  }

  test('is not changed by a "sent" report after the same or a later status', async () => {
    const one = await begun()
    await finish(one, taken)
    assert.equal(await hear(one, 'sent', 1), 'overtaken')
    await hear(one, 'delivered', 2)
    assert.equal(await hear(one, 'sent', 3), 'overtaken')
    assert.deepEqual((await stateFor(one)).events, ['sent', 'delivered'])
    assert.deepEqual(await countsOf(one.mail.projectId), { sent: 1, delivered: 1 })
  })
})
