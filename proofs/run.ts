import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { circumstances } from '../bench/figures.ts'
import {
  type Part,
  type PartName,
  type PartOptions,
  type Postern,
  type PosternOptions,
  startPostern,
} from '../bench/postern.ts'
import { makeSenders, type Sender } from '../bench/senders.ts'
import { type Sink, startSink } from '../bench/sink.ts'
import { steadyPort } from '../server/src/testing/peers/steady-port.ts'
import { check, eventsOfDelivered, faultsOf, type Promised, type Stored, type Verdict } from './check.ts'
import { Ledger } from './ledger.ts'
import { type LoadOptions, type LoadResults, type RunningLoad, startLoad } from './load.ts'
import { type Reporter, startReporter } from './reporter.ts'

/**
 * The base of all fault runs: Postern's processes, a sink and a reporter in place of an MTA, programs that send, and the
 * final check. A run adds its faults and its own criteria.
 *
 *   environment ready → processes started → mail flows → `injectFaults` → the load stops → the queue drains → checked
 */
export interface FaultRun {
  /** What is done, for the first line. */
  title: string
  seed: number
  load: Pick<LoadOptions, 'programs' | 'pauseMs' | 'bytes' | 'recipientsOf'>
  senders?: number
  /** Delay between the sink's recording a mail and acknowledging it. */
  paceMs?: number
  /** Where PostgreSQL keeps its data, if it is to be a certain place. */
  data?: string
  /** The same for its write-ahead log. */
  wal?: string
  /** A PostgreSQL of another kind than one by itself. */
  cluster?: PosternOptions['cluster']
  /** Another release of Postern than the one that is here. */
  program?: string
  /** What programs send to, where it is not the API itself. Asked when the ground is laid. */
  url?(): string
  /** Which parts are started before mail flows: all, unless the run starts some of its own. */
  parts?: readonly PartName[]
  /** Settings of every part. */
  environment?: Record<string, string>
  /**
   * Puts something between the parts, such as an MTA before the sink or a bad line. What it gives back are settings of
   * every part; by default the worker hands over to the sink.
   */
  lay?(ground: Environment): Promise<Record<string, string>>
  /** Who brings reports to the intake, where it is not our reporter. */
  reports?(ground: Environment): Reporter
  /** While mail flows. The load stops when this ends. */
  injectFaults(stage: Stage): Promise<FaultReport>
  /** After the load has stopped, and when everything has come to rest: what is to be found besides. */
  findFaults?(stage: Stage, verdict: Verdict): Promise<string[]>
  /** After that time something is stuck. */
  drainMs?: number
  /** `--counts-only`: nothing about time is a fault. */
  isCountsOnly?: boolean
  /** In the end, leases and waiting times that nothing but time would end are ended at once. */
  skipsWaits?: boolean
}

export interface Environment {
  postern: Postern
  sink: Sink
  /** Where the sink writes down what it has received. */
  received: string
  /** Where the API and the intake listen, whoever starts them. */
  httpPort: number
  intakePort: number
  /** Lives on when PostgreSQL is started again. */
  query<T extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<T[]>
  pool: pg.Pool
}

export interface Stage extends Environment {
  senders: readonly Sender[]
  /** As they were started first. */
  parts: Partial<Record<PartName, Part>>
  /** Another process, under the settings of the run. */
  start(name: PartName, options?: PartOptions): Promise<Part>
  loadResults: LoadResults
  reporter: Reporter
}

export interface FaultReport {
  /** For the summary. */
  lines: string[]
  /** Mails that may come twice: a list for each time that something went wrong. */
  inFlight: readonly (readonly Promised[])[]
  faults?: string[]
  /** What took too long, as a time or compared with another: faults too, but not of a run that goes by counts only. */
  late?: string[]
}

export const say = (text: string): void => void process.stdout.write(`${text}\n`)

/** Of a run that goes by counts only. */
export function reportTimeViolations(lines: readonly string[]): void {
  for (const line of lines) say(`Not counted, as it is about time: ${line}`)
}

/** The one that is given, for a second run like the first; otherwise another one each time. */
export const seedOf = (given: string | undefined): number => Number(given ?? Date.now() % 1_000_000_000)

/**
 * For `parseArgs` of every run that gives a verdict about time. With it times and ratios are printed as always, and do not
 * decide how the run ends: lost mail is lost on every machine, and late mail is not.
 */
export const countsOnlyOption = { 'counts-only': { type: 'boolean', default: false } } as const

/** How long a run waits for something: its usual limit, or without haste where time decides nothing. */
export const waitMs = (usualMs: number, isCountsOnly: boolean): number =>
  isCountsOnly ? Math.max(usualMs, unhurriedMs) : usualMs

const unhurriedMs = 600_000

const allParts: readonly PartName[] = ['api', 'worker', 'intake']
// A worker's lease is a minute; what it held is sent by another after that.
const usualDrainMs = 180_000

/** Says what it found. The process ends with 1 if that was a fault. */
export async function prove(run: FaultRun): Promise<void> {
  say(`${run.title}, seed ${run.seed}`)
  const [httpPort, intakePort] = [await steadyPort(), await steadyPort()]
  const environment: Record<string, string> = {
    POSTERN_HTTP_PORT: String(httpPort),
    POSTERN_BOUNCE_PORT: String(intakePort),
    POSTERN_FEEDBACK_REPORTERS: '127.0.0.1',
    ...run.environment,
  }
  const postern = await startPostern({
    environment,
    ...{ data: run.data, wal: run.wal, cluster: run.cluster, program: run.program },
  })
  // It is cut off when PostgreSQL is; whoever uses it then is told.
  postern.superuser.on('error', () => {})
  // The longest answer is the one to everything that was stored.
  const patience = { connectionTimeoutMillis: 10_000, query_timeout: 60_000 }
  const pool = new pg.Pool({ connectionString: postern.ownerUrl, max: 2, ...patience })
  pool.on('error', () => {})
  const received = path.join(postern.directory, 'received')
  const sink = await startSink(received, run.paceMs ?? 20)
  const query: Environment['query'] = async (text, values) => (await pool.query(text, values)).rows
  const ground: Environment = { postern, sink, received, httpPort, intakePort, query, pool }
  try {
    Object.assign(environment, { POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${sink.port}` })
    if (run.lay) Object.assign(environment, await run.lay(ground))
    await onStage(run, ground, environment)
  } finally {
    await pool.end()
    sink.stop()
    await postern.stop()
  }
}

async function onStage(
  run: FaultRun,
  ground: Environment,
  environment: Record<string, string>,
): Promise<void> {
  const { postern } = ground
  const senders = await makeSenders(postern, run.senders ?? 4)
  const start: Stage['start'] = (name, options = {}) =>
    postern.start(name, { ...options, environment: { ...environment, ...options.environment } })
  const parts: Stage['parts'] = { api: postern.api }
  for (const name of run.parts ?? allParts) if (name !== 'api') parts[name] = await start(name)
  const ledger = await Ledger.open(path.join(postern.directory, 'promised'))
  const reporter = run.reports?.(ground) ?? startReporter(ground.received, ground.intakePort)
  const load = startLoad({ url: run.url?.() ?? postern.url, senders, ledger, seed: run.seed, ...run.load })
  const stage: Stage = { ...ground, senders, parts, start, loadResults: load.loadResults, reporter }
  const startedAt = performance.now()
  const faultReport = await endLoadAfter(load, () => run.injectFaults(stage))
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
  const { isAtRest, endedWaits } = await comeToRest(stage, run)
  const inFlight = [...faultReport.inFlight, ...endedWaits]
  await reporter.stop()
  await ledger.close()

  const verdict = await checkCompatibility(stage, inFlight)
  const late = faultReport.late ?? []
  const faults = [
    ...(isAtRest ? [] : ['it did not come to rest']),
    ...faultsOf(verdict),
    ...(faultReport.faults ?? []),
    ...(run.isCountsOnly ? [] : late),
    ...reporter.refused.map((line) => `report refused: ${line}`),
    ...(await miscounts(stage)),
    ...((await run.findFaults?.(stage, verdict)) ?? []),
  ]
  say(`\n${await circumstances(ground.pool)};`)
  say(`seed ${run.seed}; ${seconds} s under load; ${faultReport.lines.join('\n')}`)
  say(summary(load.loadResults, verdict, inFlight))
  if (run.isCountsOnly) reportTimeViolations(late)
  for (const fault of faults) say(`FAULT: ${fault}`)
  if (verdict.wrongResponses.length > 0) say(await internalErrors(ground.postern.directory))
  say(faults.length === 0 ? 'Nothing was lost.' : `${faults.length} kinds of faults.`)
  if (faults.length > 0) process.exitCode = 1
}

/** What the API logged of answers that say nothing but 500. */
async function internalErrors(directory: string): Promise<string> {
  const files = (await readdir(directory)).filter((file) => /^api-\d+\.log$/.test(file))
  const texts = await Promise.all(files.map((file) => readFile(path.join(directory, file), 'utf8')))
  const lines = texts
    .flatMap((text) => text.split('\n'))
    .filter((line) => /"level":"(error|fatal)"/.test(line))
  return lines.slice(-5).join('\n')
}

async function endLoadAfter<T>(load: RunningLoad, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } finally {
    await load.stop()
  }
}

/**
 * Under lease in this moment, and not known from an earlier one: asked when the one who had them is dead, and the next
 * one is not yet born. A lease outlives several deaths, and is that of the first of them.
 */
export function leaseReader({ query }: Environment): () => Promise<Promised[]> {
  const known = new Set<string>()
  return async () => {
    const rows = await query<Promised & { attempt: number }>(
      `select message_id as id, recipient, attempt from mail.dispatch where state = 'leased'`,
    )
    return rows.filter(({ id, recipient, attempt }) => {
      const lease = `${id} ${recipient} ${attempt}`
      const isNew = !known.has(lease)
      known.add(lease)
      return isNew
    })
  }
}

/** Nothing is to be sent, and a report was brought for everything that was received; or that takes too long. */
async function comeToRest(
  stage: Stage,
  { drainMs: givenMs = usualDrainMs, skipsWaits, isCountsOnly = false }: FaultRun,
): Promise<{ isAtRest: boolean; endedWaits: Promised[][] }> {
  const drainMs = waitMs(givenMs, isCountsOnly)
  const { query, loadResults, reporter, sink } = stage
  const endedWaits: Promised[][] = []
  say(`${loadResults.promised.length} mails were promised; waiting for the last one`)
  let quietSince = Date.now()
  let last = ''
  for (const deadline = Date.now() + drainMs; Date.now() < deadline; await sleep(500)) {
    const waiting = await query('select message_id, state, attempt from mail.dispatch order by 1, 2, 3')
    const now = JSON.stringify([waiting, reporter.taken(), sink.count()])
    if (now !== last) quietSince = Date.now()
    last = now
    if (Date.now() - quietSince < quietMs) continue
    if (waiting.length === 0 && reporter.taken() + reporter.refused.length === sink.count())
      return { isAtRest: true, endedWaits }
    await reporter.nudge?.()
    if (skipsWaits) endedWaits.push(await endWaits(stage))
  }
  say(`The queue was not empty after ${drainMs / 1000} s.`)
  return { isAtRest: false, endedWaits }
}

/** Longer than a mail is on its way where nobody sees it: the last was handed over, and the reporter has not looked since. */
const quietMs = 3000

/**
 * As if a long time had gone by: whoever had a lease is gone, and whatever was put off is due. On a slow machine one may
 * be there still, and send what another sends too: the leases that were taken away.
 */
async function endWaits({ query }: Stage): Promise<Promised[]> {
  await query(`update mail.dispatch set due_at = postern.now() where state = 'deferred'`)
  return query<Promised>(
    `update mail.dispatch set leased_until = postern.now() where state = 'leased' and leased_until > postern.now()
     returning message_id as id, recipient`,
  )
}

async function checkCompatibility(
  { query, sink, loadResults }: Stage,
  inFlight: FaultReport['inFlight'],
): Promise<Verdict> {
  return check({
    promised: loadResults.promised,
    answers: loadResults.answers,
    unanswered: loadResults.unanswered,
    received: (await sink.read()).map(({ messageId, recipient }) => ({
      id: messageId.split('@')[0] ?? '',
      recipient,
    })),
    stored: await query<Stored>(
      `select recipients.message_id as id, recipients.address as recipient, recipients.status,
              coalesce(told.events, '{}') as events
         from mail.recipients
         left join (select message_id, recipient_no, jsonb_object_agg(type, times) as events
                      from (select message_id, recipient_no, type, count(*) as times from mail.events
                             group by message_id, recipient_no, type) as counted
                     group by message_id, recipient_no) as told using (message_id, recipient_no)`,
    ),
    inFlight,
    finalStatuses: ['delivered'],
    told: eventsOfDelivered,
  })
}

/** What is counted must be what there is. */
async function miscounts({ query }: Stage): Promise<string[]> {
  const [counts = {}] = await query<Record<string, string>>(
    `select (select count(*) from mail.recipients) as recipients,
            (select sum(accepted) from mail.usage where period = 'day') as "the quota",
            (select sum(sent) from mail.daily_counters) as "the count of sent mail",
            (select sum(delivered) from mail.daily_counters) as "the count of delivered mail",
            (select count(*) + sum(recipient_count - 1) from mail.messages join mail.bodies on message_id = id)
              as "messages with a body"`,
  )
  const { recipients, ...others } = counts
  return Object.entries(others).flatMap(([what, count]) =>
    count === recipients ? [] : [`${what} is ${count}, and there are ${recipients} recipients`],
  )
}

function summary(loadResults: LoadResults, verdict: Verdict, inFlight: FaultReport['inFlight']): string {
  const { requests, repetitions, refused, unanswered, answers } = loadResults
  const unavailable = answers.filter(({ status }) => status === 503).length
  return [
    `requests ${requests}, repeated ${repetitions}, answered 503 ${unavailable}, refused ${refused.length}, recipients without a response ${unanswered.length}`,
    `promised ${verdict.promised}, received ${verdict.received}, lost ${verdict.lost.length}`,
    `in flight at a fault ${inFlight.flat().length}, duplicates ${verdict.duplicates}, unexplained ${verdict.unexplainedDuplicates.length}`,
    `sent although the response was lost ${verdict.sentUnanswered} (allowed)`,
    `not final ${verdict.unfinished.length}, wrong event counts ${verdict.wrongEventCounts.length}`,
  ].join('\n')
}
