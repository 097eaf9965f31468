import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../context/context.ts'
import { Acceptance } from '../core/mail/messages/acceptance.ts'
import { readDraft } from '../core/mail/messages/draft.ts'
import { publishToControl, publishToMail } from '../core/outbox/outbox.ts'
import { relayToControl } from '../core/outbox/relay-to-control.ts'
import { relayToMail } from '../core/outbox/relay-to-mail.ts'
import type { ReadTx, UnscopedDb } from '../platform/db/db.ts'
import { HintListener } from '../platform/db/hints.ts'
import { type Handlers, JobRunner, JobSender } from '../platform/jobs/jobs.ts'
import { queues } from '../platform/jobs/queues.ts'
import { ampleByteLimits } from '../testing/fixtures/byte-limits.ts'
import { fixtures } from '../testing/fixtures/fixtures.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { signedIn } from '../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../testing/harness/database.ts'
import { eventually, patienceMs } from '../testing/harness/waiting.ts'
import { webhookHarness } from '../testing/harness/webhook-harness.ts'
import { Dispatcher } from './dispatcher.ts'
import { runOutboxRelays } from './outbox-relay.ts'

/** The polling interval of idle loops. Longer than the time limit of a test, so only a hint can wake them. */
const anHourMs = 3_600_000

const database = await testDatabase()
const stage = await webhookHarness(database)
const { context } = stage.api
const [{ mail, hints }] = context.cells.all
const { makeProject, makeDomain } = fixtures(database, await signedIn(stage.api))
const { dispatch, log } = workerDeps(context)
const acceptance = new Acceptance(mail, ['service'], ampleByteLimits)

/** Never connects. */
const disconnectedHints = new HintListener({
  connect: () => new Promise(() => {}),
  notify: async () => {},
  onError: () => {},
})
cleanUp(() => disconnectedHints.close())

/** Accepts a message with a test key: it needs no mail server. */
async function send(): Promise<string> {
  const { id: projectId } = await makeProject()
  const { name } = await makeDomain(projectId, { mta_provider: 'service', status: 'verified' })
  const draft = readDraft(
    { from: `a@${name}`, to: ['b@example.net'], subject: 'Hello', text: 'Hello' },
    Date.now(),
  )
  const answer = await acceptance.accept({
    sender: { projectId, apiKey: { id: 1, isTest: true, domainId: null }, userId: 1 },
    mails: [draft],
  })
  const [outcome] = 'outcomes' in answer ? answer.outcomes : []
  assert.ok(outcome && 'accepted' in outcome)
  return outcome.accepted.id
}

const isSent = (id: string) =>
  eventually('the message is sent', async () => {
    const rows = await database.query(
      `select from mail.recipients where message_id = $1 and status not in ('queued', 'scheduled')`,
      [id],
    )
    return rows.length > 0
  })

/** Counts single reads by the name of their function, and transactions. */
function counted(inner: UnscopedDb) {
  const counts = { transactions: 0, reads: new Map<string, number>() }
  const db: UnscopedDb = {
    transaction: (work) => {
      counts.transactions++
      return inner.transaction(work)
    },
    dryRun: (work) => inner.dryRun(work),
    writeOne: (statement) => inner.writeOne(statement),
    read: (work) => {
      counts.transactions++
      return inner.read(work)
    },
    readOne: <T>(query: (tx: ReadTx) => Promise<T>) => {
      counts.reads.set(query.name, (counts.reads.get(query.name) ?? 0) + 1)
      return inner.readOne(query)
    },
  }
  return { db, counts, readsOf: (name: string) => counts.reads.get(name) ?? 0 }
}

const listening = () => eventually('hints are received', () => hints.isListening)

describe('a dispatcher', () => {
  test('that is idle sends new mail when the hint arrives', async () => {
    const { db, counts, readsOf } = counted(mail)
    const dispatcher = new Dispatcher({ ...dispatch, db, hints, idleRefreshMs: anHourMs, log })
    dispatcher.start()
    await listening()
    const sweeps = readsOf('findSweepable')
    await eventually('it is idle', () => readsOf('findSweepable') >= sweeps + 3)
    assert.equal(counts.transactions, 0)
    await isSent(await send())
    await dispatcher.stop()
  })

  test('that receives no hints polls', async () => {
    const dispatcher = new Dispatcher({
      ...{ ...dispatch, db: mail, hints: disconnectedHints, idleRefreshMs: anHourMs, log },
    })
    dispatcher.start()
    const id = await send()
    await isSent(id)
    await dispatcher.stop()
  })
})

describe('a webhook dispatcher', () => {
  test('that is idle delivers new events when the hint arrives, and due retries without a hint', async () => {
    const { db, readsOf } = counted(mail)
    const endpoint = await stage.makeEndpoint(await stage.makeProject())
    stage.receiver.answer({ status: 503 }, endpoint.path)
    const worker = stage.startWorker({ db, hints, idlePollMs: anHourMs, retryDelayMs: () => 100 })
    await listening()
    const reads = readsOf('findWork')
    await eventually('it is idle', () => readsOf('findWork') > reads)
    await stage.publishEvents(endpoint.project_id)
    await stage.receiver.until(2, endpoint.path)
    await worker.stop()
  })
})

describe('the outbox relays', () => {
  test('that are idle relay new rows when the hint arrives', async () => {
    const stopping = new AbortController()
    const control = context.hints === hints ? hints : undefined
    const running = runOutboxRelays(
      { db: context.db.admin, mailDb: mail, hints: { mail: hints, control }, idlePollMs: anHourMs, log },
      stopping.signal,
    )
    await listening()
    const { id } = await makeProject()
    for (let round = 0; round < 2; round++) {
      await context.db.admin.transaction((tx) =>
        publishToMail(tx, id, 'endpoint.deleted', { endpoint_id: 1 }),
      )
      await mail.transaction((tx) => publishToControl(tx, id, 'endpoint.stats_changed', { endpoint_id: 1 }))
      await eventually('both rows are relayed', async () => {
        const [toMail, toControl] = [
          await database.query('select from control.outbox'),
          await database.query('select from mail.outbox'),
        ]
        return toMail.length + toControl.length === 0
      })
    }
    stopping.abort()
    await running
  })

  test('with nothing to relay execute three single statements', async () => {
    const [admin, mails] = [counted(context.db.admin), counted(mail)]
    const deps = { db: admin.db, mailDb: mails.db }
    assert.deepEqual(await relayToControl(deps), { relayed: 0, isMore: false, isEmpty: true })
    assert.deepEqual(await relayToMail(deps), { applied: 0, isMore: false, isEmpty: true })
    const reads = [admin, mails].map(({ counts }) => [...counts.reads.values()].reduce((a, b) => a + b))
    assert.deepEqual(reads, [1, 2])
    assert.deepEqual([admin.counts.transactions, mails.counts.transactions], [0, 0])
  })
})

describe('a job runner', () => {
  test('that is idle runs new jobs when the hint arrives', async () => {
    const opened = openDatabase(database)
    const options = { db: opened.statementsAsAdmin(), onError: assert.ifError }
    const sender = new JobSender(options)
    const runner = new JobRunner({ ...options, hints: opened.hints, idlePollMs: anHourMs })
    const done: number[] = []
    const nothing = async () => {}
    const handlers = {
      ...Object.fromEntries(Object.keys(queues).map((queue) => [queue, nothing])),
      'domains.check': async ({ domain_id }) => void done.push(domain_id),
    } as Handlers
    await sender.start()
    await runner.run(handlers, {})
    await eventually('hints are received', () => opened.hints.isListening)
    // More jobs than the runner runs at the same time.
    const ids = [1, 2, 3, 4, 5]
    await opened.as('admin').transaction(async (tx) => {
      for (const domain_id of ids) await sender.send(tx, 'domains.check', { project_id: 1, domain_id })
    })
    await eventually('all jobs have run', () => done.length === ids.length)
    assert.deepEqual(done.toSorted(), ids)
    await runner.stop(patienceMs)
    await sender.stop(patienceMs)
  })
})
