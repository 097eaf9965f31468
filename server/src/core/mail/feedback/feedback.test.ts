import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { mailRows, type TestMail } from '../../../testing/fixtures/mail-rows.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { feedbackRules } from '../../../testing/harness/feedback.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'
import { recordStatements } from '../../../testing/harness/statements.ts'
import { applyFeedback, digestBytes, type Feedback, type FeedbackKind, maxReports } from './feedback.ts'

const database = await testDatabase()
const db = openDatabase(database, { poolSize: 8 }).as('mail')
const { makeMail, stateOf, countsOf, suppressed, outbox } = mailRows(database)

let projects = 1000
const newProject = () => ++projects

const reportOf = (mail: TestMail, kind: FeedbackKind, changes: Partial<Feedback> = {}): Feedback => ({
  ...{ shard: mail.shard, messageId: mail.messageId, recipientNo: mail.recipientNo, attempt: 1 },
  ...{ kind, status: null, diagnostic: null, digest: randomBytes(digestBytes) },
  ...changes,
})

const applyAll = (reports: readonly Feedback[]) =>
  db.transaction((tx) => applyFeedback(tx, reports, feedbackRules))

const apply = async (report: Feedback) => (await applyAll([report]))[0]

const typesOf = async (mail: TestMail) => (await stateOf(mail)).events.map(({ type }) => type)

const attemptsOf = (mail: TestMail) =>
  database.query('select attempt, outcome from mail.attempts where message_id = $1', [mail.messageId])

/** The number of reports written to a recipient. */
async function reportsOf({ messageId }: TestMail): Promise<number> {
  const [row] = await database.query<{ reports: number }>(
    `select length(report_digests) / ${digestBytes} as reports from mail.recipients where message_id = $1`,
    [messageId],
  )
  return row?.reports ?? 0
}

const kinds = ['delivered', 'deferred', 'bounced', 'failed', 'complained'] as const

describe('feedback', () => {
  for (const kind of kinds) {
    test(`"${kind}" changes the status of sent mail, with an event and a count, and a duplicate changes nothing`, async () => {
      const project = newProject()
      const mail = await makeMail(project)
      const response = { status: '5.7.1', diagnostic: 'smtp; 550 5.7.1 No' }
      const report = reportOf(mail, kind, response)
      assert.equal(await apply(report), 'applied')
      const after = {
        ...{ status: kind, reply: response.diagnostic, dispatch: null },
        events: [{ type: `message.${kind}`, data: { recipient: mail.address, ...response } }],
      }
      assert.deepEqual(await stateOf(mail), after)
      assert.equal(await apply(report), 'repeated')
      assert.deepEqual(await stateOf(mail), after)
      assert.deepEqual(await countsOf(project), { [kind]: 1 })
      assert.equal((await outbox(project)).length, ['bounced', 'failed', 'complained'].includes(kind) ? 1 : 0)
    })
  }

  /** Applies every kind of report to every status. */
  test('causes exactly the transitions of the state machine', async () => {
    const statuses = ['scheduled', 'queued', 'sent', 'deferred', 'delivered', 'bounced', 'failed']
    const moved: string[] = []
    for (const status of [...statuses, 'complained', 'suppressed', 'canceled']) {
      for (const kind of kinds) {
        const project = newProject()
        const mail = await makeMail(project, { status })
        const outcome = await apply(reportOf(mail, kind))
        const after = await stateOf(mail)
        assert.equal(after.status, outcome === 'applied' ? kind : status)
        assert.equal(after.events.length, outcome === 'applied' ? 1 : 0)
        assert.deepEqual(await countsOf(project), outcome === 'applied' ? { [kind]: 1 } : {})
        if (outcome === 'applied') moved.push(`${status} ${kind}`)
      }
    }
    const underway = ['scheduled', 'queued', 'sent', 'deferred']
    assert.deepEqual(
      moved.sort(),
      [
        ...underway.flatMap((status) => kinds.map((kind) => `${status} ${kind}`)),
        'delivered bounced',
        'delivered complained',
      ]
        // Coalesced, because it was deferred a moment ago.
        .filter((move) => move !== 'deferred deferred')
        .sort(),
    )
  })

  test('that arrives before the worker records "sent" completes the delivery with the same events', async () => {
    for (const dispatch of ['leased', 'ready', 'deferred']) {
      const project = newProject()
      const mail = await makeMail(project, { status: 'queued', dispatch })
      assert.equal(await apply(reportOf(mail, 'delivered')), 'applied')
      const { status, dispatch: left } = await stateOf(mail)
      assert.deepEqual([status, left], ['delivered', null])
      assert.deepEqual(await typesOf(mail), ['message.sent', 'message.delivered'])
      assert.deepEqual(await countsOf(project), { sent: 1, delivered: 1 })
      assert.deepEqual(await attemptsOf(mail), [{ attempt: 1, outcome: 'sent' }])
    }
  })

  test('about an earlier attempt also completes a later one', async () => {
    const mail = await makeMail(newProject(), { status: 'queued', dispatch: 'leased', attempt: 3 })
    assert.equal(await apply(reportOf(mail, 'delivered', { attempt: 1 })), 'applied')
    assert.equal((await stateOf(mail)).dispatch, null)
  })

  test('about a delay leaves a queued delivery unchanged', async () => {
    const project = newProject()
    const mail = await makeMail(project, { status: 'queued', dispatch: 'leased' })
    await apply(reportOf(mail, 'deferred'))
    const { status, dispatch } = await stateOf(mail)
    assert.deepEqual([status, dispatch], ['deferred', 'leased'])
    assert.deepEqual(await countsOf(project), { deferred: 1 })
  })

  test('suppresses the address, in lower case, for configured status codes and for every complaint', async () => {
    const project = newProject()
    const wrong = await makeMail(project, { address: 'No.Body@Example.net' })
    const full = await makeMail(project, { address: 'full@example.net' })
    const angry = await makeMail(project, { address: 'Angry@Example.net', status: 'bounced' })
    await apply(reportOf(wrong, 'bounced', { status: '5.1.1' }))
    await apply(reportOf(full, 'bounced', { status: '5.2.2' }))
    await apply(reportOf(angry, 'complained'))
    // Already final: this 5.1.1 changes nothing and must not suppress the address.
    const done = await makeMail(project, { address: 'done@example.net', status: 'failed' })
    await apply(reportOf(done, 'bounced', { status: '5.1.1' }))
    assert.deepEqual(await suppressed(project), [
      { address: 'angry@example.net', reason: 'complaint', message_id: angry.messageId },
      { address: 'no.body@example.net', reason: 'bounce', message_id: wrong.messageId },
    ])
    const again = await makeMail(project, { address: 'no.body@example.net' })
    await apply(reportOf(again, 'complained'))
    assert.equal((await suppressed(project))[1]?.reason, 'complaint', 'a complaint replaces any other reason')
  })

  test('about an unknown message returns unknown and writes nothing', async () => {
    const mail = await makeMail(newProject())
    for (const stranger of [
      { messageId: mail.messageId.replace(/.{4}$/, 'ffff') },
      { recipientNo: 7 },
      { shard: (mail.shard + 1) % 1024 },
      { messageId: '00000000-0000-0000-0000-000000000000' },
    ]) {
      assert.equal(await apply(reportOf(mail, 'bounced', stranger)), 'unknown')
    }
    assert.equal((await stateOf(mail)).status, 'sent')
    assert.equal(await reportsOf(mail), 0)
  })

  test('with text that PostgreSQL cannot store is stored with replacement characters', async () => {
    const mail = await makeMail(newProject())
    const diagnostic = `x\0y\udfff${'z'.repeat(100_000)}`
    assert.equal(await apply(reportOf(mail, 'bounced', { diagnostic })), 'applied')
    const { reply } = await stateOf(mail)
    assert.match(reply ?? '', /^x\ufffdy\ufffdz{1000,}$/)
  })
})

describe('reports about one recipient', () => {
  const age = ({ messageId }: TestMail, by: string) =>
    database.query(
      'update mail.recipients set updated_at = updated_at - $2::interval where message_id = $1',
      [messageId, by],
    )

  test('with 500 different delays cause one event and one row', async () => {
    const project = newProject()
    const mail = await makeMail(project)
    const outcomes = await Promise.all(Array.from({ length: 500 }, () => apply(reportOf(mail, 'deferred'))))
    assert.equal(outcomes.filter((outcome) => outcome === 'applied').length, 1)
    assert.equal(outcomes.filter((outcome) => outcome === 'coalesced').length, 499)
    assert.deepEqual(await typesOf(mail), ['message.deferred'])
    assert.deepEqual(await countsOf(project), { deferred: 1 })
    assert.equal(await reportsOf(mail), 1)
  })

  test('a delay causes a second event after six hours, and a final report at any time', async () => {
    const mail = await makeMail(newProject())
    await apply(reportOf(mail, 'deferred'))
    await age(mail, '5 hours 59 minutes')
    assert.equal(await apply(reportOf(mail, 'deferred')), 'coalesced')
    await age(mail, '1 minute')
    assert.equal(await apply(reportOf(mail, 'deferred')), 'applied')
    assert.equal(await apply(reportOf(mail, 'bounced')), 'applied')
    assert.deepEqual(await typesOf(mail), ['message.deferred', 'message.deferred', 'message.bounced'])
  })

  test('a delay resolves an unknown outcome without an event', async () => {
    const project = newProject()
    const mail = await makeMail(project, { status: 'deferred', dispatch: 'leased' })
    await database.query(
      `insert into mail.attempts (message_id, recipient_no, attempt, project_id, provider, outcome, started_at)
       values ($1, 0, 1, $2, 'service', 'unknown', postern.now())`,
      [mail.messageId, project],
    )
    assert.equal(await apply(reportOf(mail, 'deferred')), 'overtaken')
    assert.equal((await stateOf(mail)).dispatch, null)
    assert.deepEqual(await typesOf(mail), ['message.sent'])
  })

  test('without effect are not stored, even if they are concurrent', async () => {
    const project = newProject()
    const mail = await makeMail(project)
    const many = Array.from({ length: 100 }, () => reportOf(mail, 'delivered'))
    const outcomes = await Promise.all(many.map(apply))
    assert.equal(outcomes.filter((outcome) => outcome === 'applied').length, 1)
    assert.equal(outcomes.filter((outcome) => outcome === 'overtaken').length, 99)
    assert.equal(await reportsOf(mail), 1)
    for (let no = 0; no < 50; no++) await apply(reportOf(mail, 'deferred'))
    assert.equal(await apply(reportOf(mail, 'bounced')), 'applied', 'they do not count against the limit')
    assert.deepEqual(await countsOf(project), { delivered: 1, bounced: 1 })
  })

  test('are applied up to the limit, but a complaint is always applied', async () => {
    const project = newProject()
    const mail = await makeMail(project)
    for (let no = 0; no < maxReports; no++) {
      assert.equal(await apply(reportOf(mail, 'deferred')), 'applied')
      await age(mail, '6 hours')
    }
    const more = await Promise.all(kinds.slice(0, 4).map((kind) => apply(reportOf(mail, kind))))
    assert.deepEqual(new Set(more), new Set(['limited']))
    assert.equal((await stateOf(mail)).status, 'deferred')
    assert.equal(await reportsOf(mail), maxReports)
    for (const outcome of ['applied', 'overtaken'])
      assert.equal(await apply(reportOf(mail, 'complained')), outcome)
    assert.equal(await reportsOf(mail), maxReports + 1)
    assert.equal((await suppressed(project)).length, 1)
    assert.equal(
      await apply(reportOf(await makeMail(project), 'bounced')),
      'applied',
      'for another recipient',
    )
  })

  test('expire two weeks after the last status change, except for complaints', async () => {
    const project = newProject()
    const mail = await makeMail(project)
    await age(mail, '13 days 23 hours')
    assert.equal(await apply(reportOf(mail, 'delivered')), 'applied')
    await age(mail, '14 days 1 minute')
    for (const kind of ['delivered', 'deferred', 'bounced', 'failed'] as const) {
      assert.equal(await apply(reportOf(mail, kind)), 'expired', kind)
    }
    assert.equal((await stateOf(mail)).status, 'delivered')
    assert.equal(await apply(reportOf(mail, 'complained')), 'applied')
    assert.equal((await suppressed(project)).length, 1)
  })

  test('are applied while the message is queued, regardless of when its status last changed', async () => {
    const mail = await makeMail(newProject(), { status: 'deferred', dispatch: 'leased' })
    await age(mail, '20 days')
    assert.equal(await apply(reportOf(mail, 'delivered')), 'applied')
  })
})

describe('a group of reports', () => {
  test('is applied in seven statements, however many reports it contains', async (t) => {
    const project = newProject()
    for (const size of [2, 50]) {
      const mails = await Promise.all(Array.from({ length: size }, () => makeMail(project)))
      const statements = recordStatements(t)
      const outcomes = await applyAll(mails.map((mail) => reportOf(mail, 'delivered')))
      // BEGIN and COMMIT, two locks, the reports, the events and the counters.
      assert.equal(statements.count, 7)
      statements.stop()
      assert.deepEqual(new Set(outcomes), new Set(['applied']))
    }
    assert.deepEqual(await countsOf(project), { delivered: 52 })
  })

  test('has the same effect as its reports applied one by one, even if all are about one recipient', async () => {
    const chance = new Chance(seed)
    const kindsAndDigests = Array.from({ length: 8 }, () => ({
      kind: chance.pick([...kinds]),
      digest: randomBytes(digestBytes),
    }))
    const twice = [...kindsAndDigests, ...kindsAndDigests].sort(() => chance.below(3) - 1)
    const [one, other] = [newProject(), newProject()]
    const [alone, grouped] = [
      await makeMail(one, { status: 'queued', dispatch: 'leased' }),
      await makeMail(other, { status: 'queued', dispatch: 'leased' }),
    ]
    const expected = []
    for (const { kind, digest } of twice) expected.push(await apply(reportOf(alone, kind, { digest })))
    const group = twice.map(({ kind, digest }) => reportOf(grouped, kind, { digest }))
    assert.deepEqual(await applyAll(group), expected, `seed ${seed}`)
    const [after, afterGroup] = [await stateOf(alone), await stateOf(grouped)]
    assert.deepEqual(
      [afterGroup.status, afterGroup.events.map(({ type }) => type)],
      [after.status, after.events.map(({ type }) => type)],
    )
    assert.deepEqual(await countsOf(other), await countsOf(one))
    assert.equal(await reportsOf(grouped), await reportsOf(alone))
  })

  test('about messages of several days finds each in its partition', async () => {
    const project = newProject()
    const today = await makeMail(project)
    const yesterday = await makeMail(project, { daysAgo: 1 })
    const outcomes = await applyAll([reportOf(yesterday, 'bounced'), reportOf(today, 'delivered')])
    assert.deepEqual(outcomes, ['applied', 'applied'])
    assert.deepEqual(
      [(await stateOf(today)).status, (await stateOf(yesterday)).status],
      ['delivered', 'bounced'],
    )
  })
})

describe('concurrent feedback', () => {
  test('causes one event for 100 copies of a report', async () => {
    const project = newProject()
    const mail = await makeMail(project, { status: 'queued', dispatch: 'leased' })
    const report = reportOf(mail, 'bounced', { status: '5.1.1' })
    const outcomes = await Promise.all(Array.from({ length: 100 }, () => apply(report)))
    assert.equal(outcomes.filter((outcome) => outcome === 'applied').length, 1)
    assert.equal(outcomes.filter((outcome) => outcome === 'repeated').length, 99)
    assert.deepEqual(await typesOf(mail), ['message.sent', 'message.bounced'])
    assert.deepEqual(await countsOf(project), { sent: 1, bounced: 1 })
    assert.equal((await outbox(project)).length, 1)
    assert.equal((await suppressed(project)).length, 1)
  })

  test(`in any order is serializable, with counts that match the events (seed ${seed})`, async () => {
    const chance = new Chance(seed)
    const project = newProject()
    const mails = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        makeMail(project, n % 2 === 0 ? { status: 'queued', dispatch: 'leased' } : {}),
      ),
    )
    const reports = mails.flatMap((mail) =>
      Array.from({ length: 1 + chance.below(4) }, () => reportOf(mail, chance.pick([...kinds]))),
    )
    const twice = [...reports, ...reports].sort(() => chance.below(3) - 1)
    await Promise.all(twice.map(apply))
    for (const mail of mails) {
      const { status, dispatch } = await stateOf(mail)
      const types = await typesOf(mail)
      assert.ok(types.includes(`message.${status}`) || types.length === 0, types.join())
      const isOver = !['queued', 'sent', 'deferred'].includes(status)
      if (isOver) assert.equal(dispatch, null)
      assert.ok(types.filter((type) => type === 'message.sent').length <= 1)
    }
    const events = await database.query<{ kind: string; count: number }>(
      `select substr(type, 9) as kind, count(*)::int from mail.events where project_id = $1 group by 1`,
      [project],
    )
    assert.deepEqual(
      await countsOf(project),
      Object.fromEntries(events.map(({ kind, count }) => [kind, count])),
    )
  })
})
