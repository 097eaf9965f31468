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
import { printResult, verdictOf } from '../bench/result.ts'
import { makeSenders, type Sender } from '../bench/senders.ts'
import { type Sink, startSink } from '../bench/sink.ts'
import { steadyPort } from '../server/src/testing/peers/steady-port.ts'
import { check, eventsOfDelivered, faultsOf, type Promised, type Stored, type Verdict } from './check.ts'
import { Ledger } from './ledger.ts'
import { type LoadOptions, type LoadResults, type RunningLoad, startLoad } from './load.ts'
import { type Reporter, startReporter } from './reporter.ts'

/**
 * Shared by all fault runs: Postern's processes, a sink and a reporter in place of an MTA, clients that send, and the
 * final check. Each run adds its faults and criteria.
 *
 *   environment ready → processes started → load started → `injectFaults` → load stopped → queue drained → checked
 */
export interface FaultRun {
  /** The title of the run, printed first. */
  title: string
  seed: number
  load: Pick<LoadOptions, 'programs' | 'pauseMs' | 'bytes' | 'recipientsOf'>
  senders?: number
  /** The delay between the time the sink records a message and the time it acknowledges it. */
  paceMs?: number
  /** The data folder of PostgreSQL. Default: a temporary folder. */
  data?: string
  /** PostgreSQL's WAL folder. */
  wal?: string
  /** Replaces the single PostgreSQL server. */
  cluster?: PosternOptions['cluster']
  /** Another build of Postern. */
  program?: string
  /** The URL that clients use, if not the API's. Called when the environment is ready. */
  url?(): string
  /** The processes to start before the load. Default: all. */
  parts?: readonly PartName[]
  /** Settings for every process. */
  environment?: Record<string, string>
  /**
   * Adds a component between the processes, such as an MTA in front of the sink or a faulty connection. Returns settings for
   * every process; by default the worker sends to the sink.
   */
  lay?(ground: Environment): Promise<Record<string, string>>
  /** The source of reports. Default: the built-in reporter. */
  reports?(ground: Environment): Reporter
  /** Runs under load. The load stops when it resolves. */
  injectFaults(stage: Stage): Promise<FaultReport>
  /** Additional checks after the queue has drained. */
  findFaults?(stage: Stage, verdict: Verdict): Promise<string[]>
  /** The time limit for draining the queue. */
  drainMs?: number
  /** `--counts-only`: durations are not faults. */
  isCountsOnly?: boolean
  /** Expires leases and delays while draining, instead of waiting for them. */
  skipsWaits?: boolean
}

export interface Environment {
  postern: Postern
  sink: Sink
  /** The sink's ledger file. */
  received: string
  /** The ports of the API and the intake. They do not change when a process restarts. */
  httpPort: number
  intakePort: number
  /** Works across restarts of PostgreSQL. */
  query<T extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<T[]>
  pool: pg.Pool
}

export interface Stage extends Environment {
  senders: readonly Sender[]
  /** The processes that were started before the load. */
  parts: Partial<Record<PartName, Part>>
  /** Starts another process with the run's settings. */
  start(name: PartName, options?: PartOptions): Promise<Part>
  loadResults: LoadResults
  reporter: Reporter
}

export interface FaultReport {
  /** Lines of the summary. */
  lines: string[]
  /** Messages that may arrive twice: one list per fault. */
  inFlight: readonly (readonly Promised[])[]
  faults?: string[]
  /** Durations and ratios above their limits. They are faults, except with --counts-only. */
  late?: string[]
}

export const say = (text: string): void => void process.stdout.write(`${text}\n`)

/** Prints durations that are not faults because of --counts-only. */
export function reportTimeViolations(lines: readonly string[]): void {
  for (const line of lines) say(`Not counted, because it is a duration: ${line}`)
}

/** The specified seed, to repeat a run; otherwise a new one. */
export const seedOf = (given: string | undefined): number => Number(given ?? Date.now() % 1_000_000_000)

/**
 * Passed to `parseArgs` by every run that limits durations. With this option, durations and ratios are still printed
 * but do not affect the exit code, because they depend on the machine.
 */
export const countsOnlyOption = { 'counts-only': { type: 'boolean', default: false } } as const

/** The time limit for a wait: the usual one, or a longer one with --counts-only. */
export const waitMs = (usualMs: number, isCountsOnly: boolean): number =>
  isCountsOnly ? Math.max(usualMs, longWaitMs) : usualMs

const longWaitMs = 600_000

const allParts: readonly PartName[] = ['api', 'worker', 'intake']
// A lease lasts a minute; after that another worker sends the message.
const usualDrainMs = 180_000

/** Prints the results. The exit code is 1 if there were faults. */
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
  // The connection is lost when PostgreSQL is killed; the next query reports the error.
  postern.superuser.on('error', () => {})
  // The slowest query reads everything that was stored.
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
    await runOnStage(run, ground, environment)
  } finally {
    await pool.end()
    sink.stop()
    await postern.stop()
  }
}

async function runOnStage(
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
  const { isDrained, endedWaits } = await waitForDrain(stage, run)
  const inFlight = [...faultReport.inFlight, ...endedWaits]
  await reporter.stop()
  await ledger.close()

  const verdict = await checkResults(stage, inFlight)
  const late = faultReport.late ?? []
  const counted = [
    ...(isDrained ? [] : ['the queue did not drain']),
    ...faultsOf(verdict),
    ...(faultReport.faults ?? []),
    ...reporter.refused.map((line) => `report refused: ${line}`),
    ...(await miscounts(stage)),
    ...((await run.findFaults?.(stage, verdict)) ?? []),
  ]
  const faults = [...counted, ...(run.isCountsOnly ? [] : late)]
  say(`\n${await circumstances(ground.pool)};`)
  say(`seed ${run.seed}; ${seconds} s under load; ${faultReport.lines.join('\n')}`)
  say(summary(load.loadResults, verdict, inFlight))
  if (run.isCountsOnly) reportTimeViolations(late)
  for (const fault of faults) say(`FAULT: ${fault}`)
  if (verdict.wrongResponses.length > 0) say(await internalErrors(ground.postern.directory))
  say(faults.length === 0 ? 'Nothing was lost.' : `${faults.length} kinds of faults.`)
  if (faults.length > 0) process.exitCode = 1
  printResult({
    verdict: verdictOf(counted, late),
    figures: [figuresOf(verdict), ...faultReport.lines.filter(isPlain), ...counted, ...late].join('; '),
    seed: run.seed,
  })
}

/** Not a table. */
const isPlain = (line: string): boolean => !line.includes('|')

/** The errors that the API logged for 500 responses. */
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
 * Returns the current leases, except those that an earlier call has returned. Called after a worker is killed and
 * before the next one starts. A lease can outlast several kills, and counts only for the first.
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

/** Waits, up to a timeout, until the queue is empty and every received message has been reported. */
async function waitForDrain(
  stage: Stage,
  { drainMs: givenMs = usualDrainMs, skipsWaits, isCountsOnly = false }: FaultRun,
): Promise<{ isDrained: boolean; endedWaits: Promised[][] }> {
  const drainMs = waitMs(givenMs, isCountsOnly)
  const { query, loadResults, reporter, sink } = stage
  const endedWaits: Promised[][] = []
  say(`${loadResults.promised.length} messages were promised; waiting for the last one`)
  let quietSince = Date.now()
  let last = ''
  for (const deadline = Date.now() + drainMs; Date.now() < deadline; await sleep(500)) {
    const waiting = await query('select message_id, state, attempt from mail.dispatch order by 1, 2, 3')
    const now = JSON.stringify([waiting, reporter.taken(), sink.count()])
    if (now !== last) quietSince = Date.now()
    last = now
    if (Date.now() - quietSince < quietMs) continue
    if (waiting.length === 0 && reporter.taken() + reporter.refused.length === sink.count())
      return { isDrained: true, endedWaits }
    await reporter.nudge?.()
    if (skipsWaits) endedWaits.push(await endWaits(stage))
  }
  say(`The queue was not empty after ${drainMs / 1000} s.`)
  return { isDrained: false, endedWaits }
}

/**
 * Longer than the time from when a message is sent until the reporter's next poll. Until that poll, this check cannot
 * see the message.
 */
const quietMs = 3000

/**
 * Expires leases and makes deferred messages due. On a slow machine the holder of a lease may still be running, so its
 * messages may be sent twice. Returns the expired leases.
 */
async function endWaits({ query }: Stage): Promise<Promised[]> {
  await query(`update mail.dispatch set due_at = postern.now() where state = 'deferred'`)
  return query<Promised>(
    `update mail.dispatch set leased_until = postern.now() where state = 'leased' and leased_until > postern.now()
     returning message_id as id, recipient`,
  )
}

async function checkResults(
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
              coalesce(by_recipient.events, '{}') as events
         from mail.recipients
         left join (select message_id, recipient_no, jsonb_object_agg(type, times) as events
                      from (select message_id, recipient_no, type, count(*) as times from mail.events
                             group by message_id, recipient_no, type) as counted
                     group by message_id, recipient_no) as by_recipient using (message_id, recipient_no)`,
    ),
    inFlight,
    finalStatuses: ['delivered'],
    expectedEvents: eventsOfDelivered,
  })
}

/** The counters must match the stored rows. */
async function miscounts({ query }: Stage): Promise<string[]> {
  const [counts = {}] = await query<Record<string, string>>(
    `select (select count(*) from mail.recipients) as recipients,
            (select sum(accepted) from mail.usage where period = 'day') as "the quota",
            (select sum(sent) from mail.daily_counters) as "the count of sent messages",
            (select sum(delivered) from mail.daily_counters) as "the count of delivered messages",
            (select count(*) + sum(recipient_count - 1) from mail.messages join mail.bodies on message_id = id)
              as "messages with a body"`,
  )
  const { recipients, ...others } = counts
  return Object.entries(others).flatMap(([what, count]) =>
    count === recipients ? [] : [`${what} is ${count}, but there are ${recipients} recipients`],
  )
}

const figuresOf = ({ promised, lost, duplicates, unexplainedDuplicates, unfinished }: Verdict): string =>
  `promised ${promised}, lost ${lost.length}, received twice ${duplicates} (unexplained ${unexplainedDuplicates.length}), not final ${unfinished.length}`

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
