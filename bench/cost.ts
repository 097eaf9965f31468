import { readdir, readFile } from 'node:fs/promises'
import { loadavg } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startReporter } from '../proofs/reporter.ts'
import { steadyPort } from '../server/src/testing/peers/steady-port.ts'
import { readCost, readyToCost, type Spent } from './cost-database.ts'
import { circumstances, cpuSeconds, table } from './figures.ts'
import { type Part, startPostern } from './postern.ts'
import { acceptOne, queueMails } from './queue.ts'
import { printResult } from './result.ts'
import { makeSampleMessage } from './sample-message.ts'
import { makeSenders, type Sender } from './senders.ts'
import { startSink } from './sink.ts'
import { type Standby, startStandby } from './standby.ts'

/**
 * `npm run bench:cost`: the cost of one message, stage by stage: statements, WAL, rows, dead rows and CPU time.
 * bench/README.md explains the figures; docs/operations/cost-of-a-mail.md discusses them.
 */
const { values: options } = parseArgs({
  options: {
    mails: { type: 'string', default: '2000' },
    senders: { type: 'string', default: '10' },
    bytes: { type: 'string', default: '6000' },
    'idle-seconds': { type: 'string', default: '10' },
    statements: { type: 'boolean', default: false },
    standby: { type: 'boolean', default: false },
  },
})
const mails = Number(options.mails)
const idleSeconds = Number(options['idle-seconds'])
const requestsAtOnce = 16
/** As many as Postfix opens to one destination (default_destination_concurrency_limit). */
const reporterSessions = 20
/** Statements per second of an idle installation. */
const idleStatementsGoal = 5
/** Until the results of the last messages are published. */
const settleMs = 1500
const intakePort = await steadyPort()

const say = (text: string): void => void process.stdout.write(`${text}\n`)

interface Stage {
  what: string
  /** The unit of the figures: messages or seconds. */
  per: number
  spent: Spent
  cpuMs: Record<'api' | 'worker' | 'composing' | 'intake' | 'postgres' | 'standby', number>
}

const postern = await startPostern({ settings: { shared_preload_libraries: 'pg_stat_statements' } })
const sink = await startSink(path.join(postern.directory, 'received'))
const sampleMessage = makeSampleMessage(Number(options.bytes))
const parts: Partial<Record<'worker' | 'intake', Part>> = {}
let standby: Standby | undefined
try {
  await readyToCost(postern)
  const senders = await makeSenders(postern, Number(options.senders))
  if (options.standby) standby = await startStandby(postern)
  // Warm-up: plans are cached, and code is compiled.
  await acceptOneByOne(senders, Math.ceil(mails / 4))
  await startWorker()
  parts.intake = await postern.start('intake', { environment: { POSTERN_BOUNCE_PORT: String(intakePort) } })
  await untilSent()
  await report()

  await parts.worker?.stop()
  const stages = [
    await stage('accepted one by one', mails, () => acceptOneByOne(senders, mails)),
    await stage('claimed, handed over, written down', mails, async () => {
      await startWorker()
      await untilSent()
    }),
    await stage('reported delivered', mails, report),
    await stage('with nothing to do, per second', idleSeconds, () => sleep(idleSeconds * 1000 - settleMs)),
  ]
  await parts.worker?.stop()
  stages.splice(1, 0, await stage('accepted in batches of 100', mails, () => acceptInBatches(senders, mails)))
  say(`\n${await circumstances(postern.superuser)};`)
  say(
    `${mails} messages of ${sampleMessage.text.length + sampleMessage.html.length} bytes by ${senders.length} projects; per message, or per`,
  )
  say(`second; load average ${loadavg()[0]?.toFixed(1)}.\n`)
  const head = [
    '',
    'statements',
    'WAL bytes',
    'full-page images',
    'rows in',
    'updated (in place)',
    'deleted',
    'dead',
  ]
  say(
    table(
      [...head, 'CPU ms: API', 'worker', 'of it composing', 'intake', 'PostgreSQL', 'its standby'],
      stages.map(tableRow),
    ),
  )
  if (options.statements) for (const { what, per, spent } of stages) tellStatements(what, per, spent)
  const idle = stages.at(-1)
  const perSecond = idle ? statementsOf(idle) : Number.NaN
  printResult({
    row: 'S12',
    verdict: perSecond <= idleStatementsGoal ? 'reached' : 'missed',
    figures: `${perSecond.toFixed(2)} statements per second of the API, the worker and the intake, goal ≤ ${idleStatementsGoal}, ${idleSeconds} s`,
  })
} finally {
  sink.stop()
  await standby?.stop()
  await postern.stop()
}

async function acceptOneByOne(senders: Sender[], count: number): Promise<void> {
  let next = 0
  const sendOn = async (): Promise<void> => {
    for (let place = next++; place < count; place = next++) {
      await acceptOne(postern, senders[place % senders.length] as Sender, sampleMessage)
    }
  }
  await Promise.all(Array.from({ length: requestsAtOnce }, sendOn))
}

async function acceptInBatches(senders: Sender[], count: number): Promise<void> {
  for (const sender of senders) await queueMails(postern, sender, sampleMessage, count / senders.length)
}

async function startWorker(): Promise<void> {
  parts.worker = await postern.start('worker', {
    environment: { POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${sink.port}` },
  })
}

async function untilSent(): Promise<void> {
  for (const deadline = Date.now() + 300_000; Date.now() < deadline; await sleep(100)) {
    const { rowCount } = await postern.superuser.query('select from mail.dispatch limit 1')
    if (rowCount === 0) return
  }
  throw new Error('The queue was not empty after five minutes.')
}

/** Sends a success report for every message in the sink, and empties the sink. */
async function report(): Promise<void> {
  const count = sink.count()
  const reporter = startReporter(path.join(postern.directory, 'received'), intakePort, {
    sessions: reporterSessions,
  })
  for (const deadline = Date.now() + 300_000; reporter.taken() < count; await sleep(50)) {
    if (Date.now() > deadline || reporter.refused.length > 0)
      throw new Error('Not every report was accepted.')
  }
  await reporter.stop()
  await sink.empty()
}

async function stage(what: string, per: number, work: () => Promise<void>): Promise<Stage> {
  const cpuUsed = async () => ({
    api: await cpuSeconds(postern.pids.api),
    intake: await cpuSeconds(parts.intake?.pid ?? 0),
    postgres: await cpuSeconds(postern.pids.postgres, true),
    standby: standby ? await cpuSeconds(standby.pid, true) : 0,
  })
  const isOld = parts.worker
  const cost = await readCost(postern)
  const before = { ...(await cpuUsed()), worker: await workerCpu(isOld) }
  await work()
  await sleep(settleMs)
  await standby?.untilReplayed()
  const worker = await workerCpu(parts.worker)
  // If a process started during the measurement, all of its CPU time counts.
  const had = parts.worker === isOld ? before.worker : { all: 0, composing: 0 }
  const after = await cpuUsed()
  const ms = (seconds: number): number => (seconds * 1000) / per
  say(`${what}: done, load average ${loadavg()[0]?.toFixed(1)}`)
  return {
    ...{ what, per, spent: await cost() },
    cpuMs: {
      api: ms(after.api - before.api),
      worker: ms(worker.all - had.all),
      composing: ms(worker.composing - had.composing),
      intake: ms(after.intake - before.intake),
      postgres: ms(after.postgres - before.postgres),
      standby: ms(after.standby - before.standby),
    },
  }
}

/**
 * A worker's total CPU seconds, and the CPU seconds of its busiest thread other than the main thread. That thread
 * composes and signs messages.
 */
async function workerCpu(part: Part | undefined): Promise<{ all: number; composing: number }> {
  if (!part) return { all: 0, composing: 0 }
  const tasks = await readdir(`/proc/${part.pid}/task`).catch(() => [])
  const used: number[] = []
  for (const task of tasks.filter((task) => task !== String(part.pid))) {
    const stat = await readFile(`/proc/${part.pid}/task/${task}/stat`, 'utf8').catch(() => '')
    const [user = 0, system = 0] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13)
      .map(Number)
    used.push((user + system) / 100)
  }
  return { all: await cpuSeconds(part.pid), composing: Math.max(0, ...used) }
}

/** Per message or per second. */
function statementsOf({ per, spent }: Stage): number {
  return spent.statements.reduce((sum, { calls }) => sum + calls, 0) / per
}

function tableRow(stage: Stage): string[] {
  const { what, per, spent, cpuMs } = stage
  const each = (value: number, digits: number): string => (value / per).toFixed(digits)
  const { inserted, updated, inPlace, deleted, dead } = spent.rows
  return [
    what,
    statementsOf(stage).toFixed(2),
    each(spent.walBytes, 0),
    each(spent.walImageBytes, 0),
    each(inserted, 1),
    `${each(updated, 2)} (${each(inPlace, 2)})`,
    each(deleted, 2),
    each(dead, 2),
    ...Object.values(cpuMs).map((ms) => ms.toFixed(2)),
  ]
}

function tellStatements(what: string, per: number, { statements, tables }: Spent): void {
  say(`\n${what}:\n`)
  const rows = statements
    .toSorted((one, other) => other.walBytes - one.walBytes || other.ms - one.ms)
    .slice(0, 16)
    .map(({ text, calls, ms, walBytes, walRecords }) => [
      text.replaceAll(/\s+/g, ' ').trim().slice(0, 90),
      (calls / per).toFixed(3),
      (ms / per).toFixed(3),
      (walBytes / per).toFixed(0),
      (walRecords / per).toFixed(1),
    ])
  say(table(['statement', 'calls', 'ms', 'WAL bytes', 'WAL records'], rows))
  say(
    `\n${table(
      ['table', 'rows in', 'updated', 'in place', 'deleted', 'dead'],
      tables.map(({ name, ...counts }) => [
        name,
        ...Object.values(counts).map((count) => (count / per).toFixed(2)),
      ]),
    )}`,
  )
}
