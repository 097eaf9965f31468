import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { median, percentile, table } from '../bench/figures.ts'
import type { Sender } from '../bench/senders.ts'
import { FaultyProxy } from '../server/src/testing/peers/faulty-proxy.ts'
import type { Promised } from './check.ts'
import { proveIsolation } from './isolation.ts'
import {
  countsOnlyOption,
  type FaultReport,
  leaseReader,
  prove,
  type Stage,
  say,
  seedOf,
  waitMs,
} from './run.ts'

/**
 * `npm run prove:network`: an MTA that is slow for one project's recipients, a faulty connection to one of two MTAs, and
 * a faulty connection to PostgreSQL for the API and one of two workers. proofs/README.md lists the criteria.
 */
const { values: options } = parseArgs({
  options: {
    'phase-ms': { type: 'string', default: '60000' },
    'ratio-at-most': { type: 'string', default: '1.5' },
    only: { type: 'string' },
    seed: { type: 'string' },
    programs: { type: 'string', default: '8' },
    'pause-ms': { type: 'string', default: '300' },
    'skip-waits': { type: 'boolean', default: false },
    ...countsOnlyOption,
  },
})
const seed = seedOf(options.seed)
const phaseMs = Number(options['phase-ms'])
const ratioAtMost = Number(options['ratio-at-most'])
const isCountsOnly = options['counts-only']
/**
 * The compared percentile. With --skip-waits there are few messages of each kind, and the 99th percentile would be the
 * maximum.
 */
const share = options['skip-waits'] ? 0.5 : 0.99
/** Twice the duration of a lease. */
const oldestLeaseSeconds = 120
/** Shorter than the worker's timeout for an MTA. */
const slowMs = 15_000
const slowDomain = 'slow.test'

interface Lines {
  mta: FaultyProxy
  database: FaultyProxy
}

/**
 * A temporary fault. `worsen` starts it and returns a function that ends it; `isOfOne` means that it affects only one
 * project's mail.
 */
interface Phase {
  name: string
  isOfOne: boolean
  worsen(lines: Lines, stage: Stage): () => void
  /** Called instead of `worsen` with --counts-only. Returns the faults. */
  prove?(stage: Stage): Promise<string[]>
}

const onLine = (of: keyof Lines, what: string, worsen: (line: FaultyProxy) => () => void): Phase => ({
  name: `${of}: ${what}`,
  isOfOne: false,
  worsen: (lines) => worsen(lines[of]),
})

const lineFaults: [string, (line: FaultyProxy) => () => void][] = [
  ['half a second latency', (line) => setting(line, { latencyMs: 500 })],
  ['resets', (line) => every(300, () => line.reset())],
  ['silence', (line) => setting(line, { isSilent: true })],
  ['one byte per second', (line) => setting(line, { bytesPerSecond: 1 })],
]

const phases: Phase[] = [
  { name: 'nothing', isOfOne: true, worsen: () => () => {} },
  {
    name: 'slow for one project',
    isOfOne: true,
    worsen(_lines: Lines, { sink }: Stage) {
      sink.slowDown(slowDomain, slowMs)
      return () => sink.slowDown('', 0)
    },
    prove: othersAreNotHeld,
  },
  ...(['mta', 'database'] as const).flatMap((of) =>
    lineFaults.map(([what, worsen]) => onLine(of, what, worsen)),
  ),
].filter(({ name }) => options.only === undefined || name === 'nothing' || name.includes(options.only))

function setting(line: FaultyProxy, worse: Partial<FaultyProxy>): () => void {
  Object.assign(line, worse)
  return () =>
    Object.assign(line, { latencyMs: 0, isSilent: false, bytesPerSecond: Number.POSITIVE_INFINITY })
}

function every(ms: number, act: () => void): () => void {
  const timer = setInterval(act, ms)
  return () => clearInterval(timer)
}

const isSlow = ({ domain }: Sender): boolean => domain.startsWith('sender1.')

const open: FaultyProxy[] = []
try {
  await prove({
    title: `faulty connections, ${phaseMs / 1000} s each`,
    seed,
    load: {
      programs: Number(options.programs),
      pauseMs: Number(options['pause-ms']),
      recipientsOf: (sender) => (isSlow(sender) ? slowDomain : 'example.net'),
    },
    parts: ['api', 'worker', 'intake'],
    skipsWaits: options['skip-waits'],
    isCountsOnly,
    drainMs: 300_000,
    async lay({ sink }) {
      const line = await FaultyProxy.keep(sink.port)
      open.push(line)
      return { POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${sink.port}, smtp://127.0.0.1:${line.port}` }
    },
    injectFaults,
  })
} finally {
  for (const line of open) await line.close()
}

async function injectFaults(stage: Stage): Promise<FaultReport> {
  const [mta] = open
  if (!mta) throw new Error('no proxy was opened')
  const database = await useFaultyLine(stage)
  const leases = watchLeases(stage)
  const inFlight: Promised[][] = []
  const leased = leaseReader(stage)
  const times: { phase: Phase; from: number; to: number }[] = []
  const faults: string[] = []
  for (const phase of phases) {
    inFlight.push(await leased())
    const from = now()
    const stopNoting = every(250, () => void leased().then((some) => inFlight.push(some)))
    if (isCountsOnly && phase.prove) {
      faults.push(...(await phase.prove(stage)))
    } else {
      const undo = phase.worsen({ mta, database }, stage)
      await sleep(phaseMs)
      undo()
    }
    stopNoting()
    times.push({ phase, from, to: now() })
    say(phase.name)
    // Gives the effects of this phase time to end before the next one starts.
    await sleep(phaseMs / 4)
  }
  const oldest = await leases.stop()
  const delays = await delaysOf(stage, times)
  const ratioAt = (place: number): number =>
    percentile(delays[place] ?? [], share) / percentile(delays[0] ?? [], share)
  const rows = times.map(({ phase }, place) => {
    const values = delays[place] ?? []
    if (values.length === 0) return [phase.name, '0', '–', '–', '–']
    return [
      phase.name,
      values.length,
      median(values).toFixed(0),
      percentile(values, 0.99).toFixed(0),
      ratioAt(place).toFixed(2),
    ].map(String)
  })
  const beside = times.flatMap(({ phase }, place) =>
    phase.isOfOne && place > 0 && !isCountsOnly
      ? [
          `${phase.name}: others' p${share * 100} is ${ratioAt(place).toFixed(2)} times as long (goal ≤ ${ratioAtMost})`,
        ]
      : [],
  )
  const late = times.flatMap(({ phase }, place) => {
    return phase.isOfOne && !(ratioAt(place) <= ratioAtMost)
      ? [`${phase.name}: others' p${share * 100} is ${ratioAt(place).toFixed(2)} times as long`]
      : []
  })
  return {
    lines: [
      [`the oldest lease was ${oldest.toFixed(0)} s old`, ...beside].join('; '),
      `Milliseconds from acceptance to the MTA, without mail to ${slowDomain}:\n${table(['fault', 'messages', 'p50', 'p99', `ratio of p${share * 100}`], rows)}`,
    ],
    inFlight,
    faults,
    late: [...late, ...(oldest <= oldestLeaseSeconds ? [] : [`a lease was ${oldest.toFixed(0)} s old`])],
  }
}

/**
 * The MTA does not acknowledge one project's messages. Once that project occupies all worker slots available to it and
 * has more messages queued, other projects' messages that are accepted from then on must arrive.
 */
function othersAreNotHeld({ query, senders, loadResults, sink }: Stage): Promise<string[]> {
  const projectId = senders.find((sender) => isSlow(sender))?.projectId
  const waiting = async (): Promise<number> => {
    const [row] = await query<{ count: number }>(
      `select count(*)::int as count from mail.dispatch where project_id = $1 and state = 'ready'`,
      [projectId],
    )
    return row?.count ?? 0
  }
  let promisedBefore = 0
  let pendingBefore = 0
  return proveIsolation({
    patienceMs: waitMs(0, true),
    enough: 20,
    // Queues more messages than all workers can lease at a time.
    async prepare(deadline) {
      const statement = `insert into control.queue_restrictions (project_id, kind) values ($1, 'hold') on conflict do nothing`
      await query(statement, [projectId])
      while ((await waiting()) < 100 && Date.now() < deadline) await sleep(500)
    },
    async hold() {
      sink.hold(slowDomain)
      promisedBefore = loadResults.promised.length
      await query('delete from control.queue_restrictions where project_id = $1', [projectId])
    },
    release: () => sink.release(),
    held: () => sink.held(),
    // The project has queued messages, but gets no more slots.
    async isFull(pending) {
      const isSame = pending > 0 && pending === pendingBefore
      pendingBefore = pending
      return isSame && (await waiting()) > 0
    },
    async arrived() {
      const received = new Set((await sink.read()).map(({ recipient }) => recipient))
      return loadResults.promised
        .slice(promisedBefore)
        .filter(({ recipient }) => !recipient.endsWith(`@${slowDomain}`) && received.has(recipient)).length
    },
  })
}

function now(): number {
  return performance.timeOrigin + performance.now()
}

/** Restarts the API and starts a second worker, both with a proxy to PostgreSQL. */
async function useFaultyLine({ postern, parts, start }: Stage): Promise<FaultyProxy> {
  const url = new URL(postern.databaseUrl)
  const line = await FaultyProxy.keep(Number(url.port))
  open.push(line)
  url.port = String(line.port)
  const environment = { POSTERN_DATABASE_URL: url.href }
  await parts.api?.stop()
  await start('api', { environment })
  await start('worker', { environment })
  return line
}

/** Records the age of the oldest lease. */
function watchLeases({ query }: Stage): { stop(): Promise<number> } {
  let oldest = 0
  const readOldest = async (): Promise<void> => {
    const [row] = await query<{ seconds: number | null }>(
      `select extract(epoch from max(postern.now() - leased_until))::float8 + 60 as seconds
         from mail.dispatch where state = 'leased'`,
    )
    oldest = Math.max(oldest, row?.seconds ?? 0)
  }
  const stop = every(1000, () => void readOldest().catch(() => {}))
  return {
    async stop() {
      stop()
      await readOldest()
      return oldest
    },
  }
}

/** For each phase, the times from acceptance to receipt by the MTA for the messages accepted in that phase. */
async function delaysOf(
  { loadResults, sink }: Stage,
  times: readonly { from: number; to: number }[],
): Promise<number[][]> {
  await sleep(2000)
  const received = new Map<string, number>()
  for (const { messageId, recipient, at } of await sink.read()) {
    const key = `${messageId.split('@')[0]} ${recipient}`
    received.set(key, Math.min(at, received.get(key) ?? at))
  }
  const mails = loadResults.promised.filter(({ recipient }) => !recipient.endsWith(`@${slowDomain}`))
  return times.map(({ from, to }) =>
    mails
      .filter(({ at }) => at >= from && at < to)
      // A message that has not arrived yet has been delayed at least until now.
      .map(({ id, recipient, at }) => Math.max(0, (received.get(`${id} ${recipient}`) ?? now()) - at)),
  )
}
