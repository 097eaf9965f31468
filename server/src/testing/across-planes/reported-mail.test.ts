import assert from 'node:assert/strict'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import nodemailer from 'nodemailer'
import type { FeedbackResult } from '../../core/mail/feedback/feedback.ts'
import { verpKeysOf } from '../../core/mail/feedback/match-bounce.ts'
import { srsKeysOf } from '../../core/mail/feedback/srs-path.ts'
import { countEvents } from '../../core/mail/mailbox-providers/count-events.ts'
import { startBounces } from '../../intake/bounces/bounces.ts'
import { createLogger } from '../../platform/telemetry/log.ts'
import { assertCountedByProvider } from '../expectations/mailbox-provider-counters.ts'
import { type ModelReport, type ReportedKind, ReportModel } from '../expectations/report-model.ts'
import { assertCounted } from '../expectations/sending-counters.ts'
import { type ReportName, reportAbout } from '../fixtures/mail-reports.ts'
import type { TestMail } from '../fixtures/mail-rows.ts'
import { localReporters, loopback, testAnalysisThreads } from '../harness/analysis-threads.ts'
import { cleanUp } from '../harness/cleanup.ts'
import { countAllEvents, settlingMs } from '../harness/count-events.ts'
import { openCells, openDatabase, testDatabase } from '../harness/database.ts'
import { feedbackIn, feedbackRules } from '../harness/feedback.ts'
import { Chance, seed } from '../harness/random.ts'
import { patienceMs } from '../harness/waiting.ts'
import { FaultyProxy } from '../peers/faulty-proxy.ts'

/**
 * Reports in random order, repeated, forged and late, compared with an independent model of each recipient: every report
 * is applied once, and none is lost. Some arrive by SMTP at the return path, the others are submitted directly to
 * `FeedbackGroups`, which all sources use. The connections to PostgreSQL and to the listener break repeatedly, so that
 * acknowledgements are lost. Reports without an acknowledgement are sent again, as by an MTA.
 *
 * The reports about one recipient are sent one after the other; those about different recipients are concurrent.
 *
 * `npm run prove:reports` sends a million.
 */
const reports = Number(process.env['POSTERN_TEST_REPORTS'] ?? 3000)
const [lanes, projects, firstProject] = [24, 20, 5001]
const recipientCount = Math.max(lanes, Math.ceil(reports / 10))
const betweenFaults = Math.max(250, Math.ceil(reports / 500))
const [retryMs, triesAtMost] = [50, patienceMs / 50]

const database = await testDatabase()
const databaseLine = await FaultyProxy.open(Number(new URL(database.url).port))
const url = new URL(database.url)
url.port = String(databaseLine.port)
const feedback = feedbackIn(openCells({ ...database, url: url.href }, { poolSize: 6 }))
const keys = verpKeysOf([{ id: '1', key: randomBytes(32) }])
const listener = await startBounces({
  ...{ keys, feedback, srsKeys: srsKeysOf([{ id: '1', key: randomBytes(32) }]) },
  ...{ analysisThreads: testAnalysisThreads(), reporters: localReporters, relays: loopback },
  ...{ log: createLogger('silent'), returnPathHost: 'bounces.example.org' },
  ...{ host: '127.0.0.1', port: 0, tls: undefined },
})
cleanUp(() => listener.stop(1000))
const smtpLine = await FaultyProxy.open(listener.port)
const transport = nodemailer.createTransport({
  ...{ host: '127.0.0.1', port: smtpLine.port, pool: true, maxConnections: 10 },
})
cleanUp(async () => transport.close())

/** A report that was sent, so that it can be sent again. */
interface SentReport extends ModelReport {
  /** For a report by SMTP. */
  name?: ReportName
}

interface Recipient {
  mail: TestMail
  model: ReportModel
  sent: SentReport[]
}

const tally = new Map<string, number>()
const count = (what: string): void => void tally.set(what, (tally.get(what) ?? 0) + 1)

/** Breaks the connections while responses are in transit, so that committed reports are not acknowledged. */
async function breakConnections(): Promise<void> {
  const lines = [databaseLine, smtpLine]
  for (const line of lines) line.latencyMs = 20
  await sleep(30)
  for (const line of lines) {
    line.reset()
    line.latencyMs = 0
  }
  count('faults')
}

let submitted = 0
/** Counts a report, and from time to time breaks the connections while it is in progress. */
async function submit<T>(work: () => Promise<T>): Promise<T> {
  const isFaulty = ++submitted % betweenFaults === 0
  const [result] = await Promise.all([work(), isFaulty && breakConnections()])
  return result
}

interface Delivered<T> {
  answer: T
  /** An earlier attempt got no answer, but may have been applied. */
  isRetry: boolean
}

/** Set when a lane has failed, so that the others end as well. */
let hasFailed = false

async function untilAnswered<T>(work: () => Promise<T>): Promise<Delivered<T>> {
  for (let tries = 1; ; tries++) {
    try {
      return { answer: await work(), isRetry: tries > 1 }
    } catch (error) {
      const { responseCode = 0 } = error as { responseCode?: number }
      if (responseCode >= 500 || hasFailed || tries >= triesAtMost) throw error
      count('sent again')
      await sleep(retryMs)
    }
  }
}

const applyOnce = (mail: TestMail, { id, kind, code }: ModelReport): Promise<Delivered<FeedbackResult>> =>
  untilAnswered(() =>
    feedback.apply({
      ...{ shard: mail.shard, messageId: mail.messageId, recipientNo: mail.recipientNo, attempt: 1 },
      ...{ kind, status: code, diagnostic: null },
      digest: createHash('sha256').update(`${mail.messageId} ${id}`).digest().subarray(0, 16),
    }),
  )

const sendOnce = (returnPath: string, raw: string): Promise<Delivered<unknown>> =>
  untilAnswered(() => transport.sendMail({ envelope: { from: '', to: [returnPath] }, raw }))

/** The reports that are sent by SMTP, and what they report. */
const mails: [name: ReportName, kind: ReportedKind, code: string | null][] = [
  ['postfix-relayed', 'delivered', '2.0.0'],
  ['postfix-delayed', 'deferred', '4.2.2'],
  ['postfix-unknown-user', 'bounced', '5.1.1'],
  ['postfix-refused', 'bounced', '5.7.1'],
  ['postfix-expired', 'failed', '4.2.2'],
  ['complaint', 'complained', null],
]
const kinds: ReportedKind[] = ['sent', 'delivered', 'deferred', 'deferred', 'bounced', 'failed', 'complained']

function newReport(chance: Chance, { sent }: Recipient): SentReport {
  const id = String(sent.length)
  if (!chance.happens(0.08)) {
    const kind = chance.pick(kinds)
    return { id, kind, code: kind === 'bounced' ? chance.pick(['5.1.1', '5.2.1', '5.7.1', null]) : null }
  }
  const [name, kind, code] = chance.pick(mails)
  return { id, kind, code, name }
}

/** Sends a report about the recipient, new or again, sometimes twice at the same time. */
async function report(chance: Chance, recipient: Recipient): Promise<void> {
  const { mail, model, sent } = recipient
  const isAgain = sent.length > 0 && chance.happens(0.15)
  const one = isAgain ? chance.pick(sent) : newReport(chance, recipient)
  if (!isAgain) sent.push(one)
  const copies = chance.happens(0.1) ? 2 : 1
  const expected = model.apply(one)
  count(expected)
  if (one.name) {
    const { returnPath, raw } = reportAbout(keys, mail, one.name)
    const numbered = `X-Number: ${one.id}\r\n${raw}`
    await Promise.all(Array.from({ length: copies }, () => submit(() => sendOnce(returnPath, numbered))))
    count('by SMTP')
    return
  }
  const results = await Promise.all(Array.from({ length: copies }, () => submit(() => applyOnce(mail, one))))
  const isAccepted = expected !== 'repeated' && model.accepted.has(one.id)
  // Only one copy of an accepted report is applied. If its acknowledgement was lost, it is a repetition when it is sent again.
  const unexpected = results.filter(({ answer }) => answer !== expected)
  const about = () => `${mail.messageId}: ${JSON.stringify({ one, expected, results })}`
  assert.ok(
    unexpected.every(({ answer }) => isAccepted && answer === 'repeated'),
    about(),
  )
  if (isAccepted && results.every(({ isRetry }) => !isRetry))
    assert.equal(unexpected.length, copies - 1, about())
}

/** A report about a message that does not exist, or at an address that Postern never issued. */
async function forge(chance: Chance, { mail }: Recipient): Promise<void> {
  const absent = { ...mail, messageId: mail.messageId.slice(0, 14) + randomUUID().slice(14) }
  if (chance.happens(0.7)) {
    const { answer } = await submit(() => applyOnce(absent, { id: '0', kind: 'bounced', code: '5.1.1' }))
    assert.equal(answer, 'unknown')
    count('about an unknown message')
    return
  }
  const { returnPath, raw } = reportAbout(keys, absent, 'postfix-unknown-user')
  if (chance.happens(0.5)) {
    await submit(() => sendOnce(returnPath, raw))
    count('about an unknown message')
    return
  }
  // One character of the signature of an address that exists.
  const real = reportAbout(keys, mail, 'postfix-unknown-user')
  const at = real.returnPath.indexOf('@') - 1 - chance.below(8)
  const other = real.returnPath[at] === 'a' ? 'b' : 'a'
  const forged = real.returnPath.slice(0, at) + other + real.returnPath.slice(at + 1)
  const refusal = await transport
    .sendMail({ envelope: { from: '', to: [forged] }, raw: real.raw })
    .catch((error: Error & { responseCode?: number }) => error)
  assert.ok(refusal instanceof Error, `${forged} was accepted`)
  count('forged and refused')
}

/** Far from the limits of 6 hours and 14 days, so that the duration of the run makes no difference. */
const ages = [1, 8, 13 * 24, 15 * 24]

/** Moves the last change of the recipient into the past. */
async function moveLastChange(chance: Chance, { mail, model }: Recipient): Promise<void> {
  const hours = chance.pick(ages)
  await database.query(
    `update mail.recipients set updated_at = postern.now() - make_interval(hours => $2)
      where shard = $3 and message_id = $1`,
    [mail.messageId, hours, mail.shard],
  )
  model.hoursSinceChange = hours
}

async function runLane(chance: Chance, own: readonly Recipient[]): Promise<void> {
  const busy = own.slice(0, Math.ceil(own.length / 20))
  for (let left = Math.ceil(reports / lanes); left > 0 && !hasFailed; left--) {
    const recipient = chance.pick(chance.happens(0.4) ? busy : own)
    const act = chance.next()
    if (act < 0.02) await forge(chance, recipient)
    else if (act < 0.07) await moveLastChange(chance, recipient)
    else await report(chance, recipient)
  }
}

/** The states in which reports find a recipient, some more often than others. */
const starts: [status: string, isQueued: boolean][] = [
  ...Array<[string, boolean]>(14).fill(['sent', false]),
  ...Array<[string, boolean]>(3).fill(['queued', true]),
  ['deferred', false],
  ['delivered', false],
  ['canceled', false],
  ['suppressed', false],
]

/** Every second project had an intervention that ended after its mail was accepted. */
async function excludeHalf(): Promise<void> {
  // The projects do not exist.
  await database.query(
    'alter table control.restriction_ends drop constraint restriction_ends_project_id_fkey',
  )
  await database.query(
    `insert into control.restriction_ends (project_id, ended_at)
     select id, postern.now() from generate_series($1::int, $1::int + $2::int, 2) as id`,
    [firstProject, projects],
  )
}

async function makeRecipients(chance: Chance): Promise<Recipient[]> {
  const chosen = Array.from({ length: recipientCount }, () => chance.pick(starts))
  const rows = await database.query<{ id: string; shard: number; project_id: number }>(
    `insert into mail.messages (id, project_id, identity_id, from_address, recipient_count, size_bytes)
     select postern.uuid7(postern.now() - interval '1 minute'), $2 + no % $3, 1, 'news@example.com', 1, 100
       from generate_series(1, $1::int) as no
     returning id, shard, project_id::int`,
    [recipientCount, firstProject, projects],
  )
  await database.query(
    `insert into mail.recipients (message_id, recipient_no, project_id, kind, address, status)
     select id, 0, project_id, 'to', id || '@example.net', status
       from unnest($1::uuid[], $2::bigint[], $3::text[]) as made (id, project_id, status)`,
    [rows.map(({ id }) => id), rows.map((row) => row.project_id), chosen.map(([status]) => status)],
  )
  const queued = rows.filter((_, index) => chosen[index]?.[1])
  await database.query(
    `insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient, state, attempt,
                                leased_until, due_at)
     select id, 0, project_id, 1, 'service', id || '@example.net', 'leased', 1, postern.now() + interval '1 day',
            postern.now()
       from unnest($1::uuid[], $2::bigint[]) as made (id, project_id)`,
    [queued.map(({ id }) => id), queued.map((row) => row.project_id)],
  )
  return rows.map(({ id, shard, project_id: projectId }, index) => {
    const [status, isQueued] = chosen[index] ?? assert.fail()
    return {
      mail: { projectId, shard, messageId: id, recipientNo: 0, address: `${id}@example.net` },
      model: new ReportModel(status, isQueued, feedbackRules.suppressOn),
      sent: [],
    }
  })
}

interface Found {
  id: string
  status: string
  reports: number
  is_queued: boolean
  events: string[]
  suppression: string | null
}

const storedRecipients = () =>
  database.query<Found>(
    `select recipients.message_id as id, recipients.status, length(report_digests) / 16 as reports,
            dispatch.message_id is not null as is_queued, coalesce(events.types, '{}') as events,
            suppressions.reason as suppression
       from mail.recipients
       left join mail.dispatch using (message_id, recipient_no)
       left join (select message_id, array_agg(type order by id) as types from mail.events group by message_id) as events
         using (message_id)
       left join mail.suppressions
         on suppressions.project_id = recipients.project_id and suppressions.address = lower(recipients.address)`,
  )

const isCounted = ['sent', 'delivered', 'deferred', 'bounced', 'failed', 'complained'] as const

async function storedCounts(): Promise<Map<number, Record<string, number>>> {
  const rows = await database.query<{ project_id: number } & Record<string, number>>(
    `select project_id::int, ${isCounted.map((kind) => `sum(${kind})::int as ${kind}`).join(', ')}
       from mail.daily_counters group by project_id`,
  )
  return new Map(rows.map(({ project_id, ...counts }) => [project_id, counts]))
}

function expectedCounts(recipients: readonly Recipient[]): Map<number, Record<string, number>> {
  const all = new Map<number, Record<string, number>>()
  for (const { mail, model } of recipients) {
    const counts = all.get(mail.projectId) ?? Object.fromEntries(isCounted.map((kind) => [kind, 0]))
    all.set(mail.projectId, counts)
    for (const kind of isCounted) counts[kind] = (counts[kind] ?? 0) + (model.counts[kind] ?? 0)
  }
  return all
}

const counterDb = openDatabase(database, { poolSize: 1 }).as('mail')

/** Counts by mailbox provider while reports arrive, in small steps. */
function countMeanwhile() {
  let isOver = false
  const done = (async () => {
    for (; !isOver; await sleep(100))
      await countEvents(counterDb, { eventsAtOnce: 100, steps: 10, settlingMs })
  })()
  return {
    stop: () => {
      isOver = true
      return done
    },
  }
}

test('reports in random order, repeated, forged and late are applied once, and none is lost', async (t) => {
  const recipients = await makeRecipients(new Chance(seed))
  await excludeHalf()
  const counter = countMeanwhile()
  const ends = await Promise.allSettled(
    Array.from({ length: lanes }, async (_, lane) => {
      const own = recipients.filter((_, index) => index % lanes === lane)
      await runLane(new Chance(seed + 1 + lane), own).catch((error) => {
        hasFailed = true
        throw error
      })
    }),
  )
  await counter.stop()
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  const stored = await storedRecipients()
  const found = new Map(stored.map((row) => [row.id, row]))
  assert.equal(stored.length, recipients.length)
  for (const { mail, model } of recipients) {
    assert.deepEqual(found.get(mail.messageId), {
      ...{ id: mail.messageId, status: model.status, reports: model.accepted.size },
      ...{ is_queued: model.isQueued, events: model.events, suppression: model.suppression },
    })
  }
  const counts = await storedCounts()
  for (const [project, expected] of expectedCounts(recipients))
    assert.deepEqual(counts.get(project) ?? Object.fromEntries(isCounted.map((kind) => [kind, 0])), expected)
  await assertCounted(database, 'project_id in (select project_id from control.restriction_ends)')
  await countAllEvents(database, counterDb)
  await assertCountedByProvider(database, {})
  t.diagnostic(
    `${submitted} reports about ${recipients.length} recipients, seed ${seed}, differences 0: ${JSON.stringify(Object.fromEntries(tally))}`,
  )
  // Otherwise the run would not have tested what its name says.
  const expectedToOccur = [
    ...['applied', 'repeated', 'overtaken', 'coalesced', 'expired'],
    ...['about an unknown message', 'forged and refused', 'by SMTP', 'faults', 'sent again'],
  ]
  assert.deepEqual(
    expectedToOccur.filter((what) => !tally.has(what)),
    [],
  )
})
