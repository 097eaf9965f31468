import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { writeCertificate } from '../server/src/testing/peers/certificate.ts'
import { type Endpoint, forgetWebhooks, makeEndpoints, writeEvents } from './endpoints.ts'
import { circumstances, cpuSeconds, machineCpuSeconds, median, percentile, spread, table } from './figures.ts'
import { startPostern } from './postern.ts'
import { startReceiver } from './receiver.ts'
import { creator, makeProjects } from './senders.ts'

/**
 * `npm run bench:many-endpoints`: the time from an event's commit to its arrival at a healthy endpoint, both with and
 * without an equal number of dead endpoints. bench/README.md explains the figures.
 */
const { values: options } = parseArgs({
  options: {
    endpoints: { type: 'string', default: '10000' },
    projects: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '30' },
    rate: { type: 'string', default: '50' },
    waiting: { type: 'string', default: '10' },
    'ratio-at-most': { type: 'string', default: '1.2' },
  },
})
const half = Number(options.endpoints) / 2
const projects = Number(options.projects)
const rounds = Number(options.rounds)
const seconds = Number(options.seconds)
/** Events per second to each half. */
const rate = Number(options.rate)
/** Pending events of each endpoint that has been dead for an hour. */
const waiting = Number(options.waiting)
const goal = Number(options['ratio-at-most'])

const warmUpSeconds = 5
const tickMs = 100
/** Longer than a lease. Once a lease expires, a lost worker's events are sent again. */
const patienceMs = 90_000

const scenarios = ['alone', 'just died', 'dead for an hour'] as const
type Scenario = (typeof scenarios)[number]

interface Measured {
  /** The delay of each event in ms. */
  waits: number[]
  /** Failed requests to dead endpoints per second. */
  failed: number
  workerCores: number
  otherCores: number
}

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const postern = await startPostern()
const { files } = writeCertificate(postern.directory)
const receiver = await startReceiver(postern.directory, files)
// Runs in a separate process, so the dead receivers do not slow down the measured one.
const graveyard = await startReceiver(postern.directory, files)
const refusedPort = await closedPort()
// A separate connection, so writes for dead endpoints do not delay writes for healthy ones.
const other = new pg.Client({ connectionString: postern.ownerUrl })
await other.connect()
const environment = {
  POSTERN_WEBHOOK_PORTS: [receiver.port, graveyard.port, refusedPort].join(),
  POSTERN_PRIVATE_NETWORKS: '127.0.0.0/8',
  POSTERN_WEBHOOK_CA_FILE: files.certificate,
}
const deaths = [
  `https://127.0.0.1:${refusedPort}/refused`,
  `https://127.0.0.1:${graveyard.port}/hang`,
  `https://127.0.0.1:${graveyard.port}/fail`,
]
try {
  const [living, dead] = await makeBoth()
  say(`${living.length} healthy endpoints and ${dead.length} dead ones, of ${projects} projects`)
  const turns: Record<Scenario, Measured>[] = []
  for (let round = 1; round <= rounds; round++) {
    const turn: Partial<Record<Scenario, Measured>> = {}
    for (const scenario of scenarios) {
      turn[scenario] = await measure(scenario, living, dead)
      say(`round ${round}, ${scenario}: ${summarize(turn[scenario])}`)
    }
    turns.push(turn as Record<Scenario, Measured>)
  }
  say(`\n${await circumstances(postern.superuser)};`)
  say(
    `${rounds} rounds of ${seconds} s, ${rate} events per second to each half; ms from commit to arrival, medians (min–max).\n`,
  )
  const head = ['', 'p50', 'p99', 'ratio of p50', 'ratio of p99', 'failed/s', 'worker', 'other load']
  say(
    table(
      head,
      scenarios.map((scenario) => tableRow(turns, scenario)),
    ),
  )
  const worst = Math.max(
    ...scenarios.slice(1).flatMap((scenario) => [0.5, 0.99].map((at) => median(ratios(turns, scenario, at)))),
  )
  say(`\nThe worst ratio is ${worst.toFixed(2)}; goal: at most ${goal}.`)
  if (worst > goal) process.exitCode = 1
} finally {
  receiver.stop()
  graveyard.stop()
  await other.end()
  await postern.stop()
}

/** Each project has as many healthy endpoints as dead ones. */
async function makeBoth(): Promise<[living: Endpoint[], dead: Endpoint[]]> {
  const ids = await makeProjects(postern, await creator(postern), projects)
  const wanted = (target: (index: number) => string) =>
    Array.from({ length: half }, (_, index) => ({
      projectId: ids[index % ids.length] ?? 0,
      target: target(index),
    }))
  const answering = wanted(() => `https://127.0.0.1:${receiver.port}/hook`)
  const all = await makeEndpoints(postern, [
    ...answering,
    // Failures are assigned to the projects in turn; otherwise each project would have only one kind of failure.
    ...wanted((index) => deaths[Math.floor(index / ids.length) % deaths.length] ?? ''),
  ])
  return [all.slice(0, half), all.slice(half)]
}

async function measure(
  scenario: Scenario,
  living: readonly Endpoint[],
  dead: readonly Endpoint[],
): Promise<Measured> {
  await forgetWebhooks(postern)
  await receiver.empty()
  await graveyard.empty()
  await postern.superuser.query('truncate mail.endpoint_queues')
  await answeredSoFar(scenario === 'alone' ? living : [...living, ...dead])
  if (scenario === 'dead for an hour') await deadForAnHour(dead)
  await postern.superuser.query('vacuum analyze')
  await postern.superuser.query('checkpoint')
  const worker = await postern.start('worker', { environment })
  await write(postern.superuser, living, 0, warmUpSeconds)
  const before = await used(worker.pid)
  const skip = warmUpSeconds * rate
  const [committed] = await Promise.all([
    write(postern.superuser, living, skip, seconds),
    scenario === 'alone' ? undefined : write(other, dead, skip, seconds),
  ])
  const after = await used(worker.pid)
  const waits = await waitsOf(committed)
  const { rows } = await postern.superuser.query<{ failed: number }>(
    `select count(*)::int as failed from mail.delivery_attempts where outcome <> 'delivered'`,
  )
  // Killed, because a graceful shutdown would wait for requests that never get a response.
  await worker.kill()
  const elapsed = (after.at - before.at) / 1000
  return {
    waits,
    failed: (rows[0]?.failed ?? 0) / elapsed,
    workerCores: (after.worker - before.worker) / elapsed,
    otherCores: Math.max(0, after.machine - after.ours - (before.machine - before.ours)) / elapsed,
  }
}

/** Brings the installation into a state in which every endpoint has received an event and has a queue. */
async function answeredSoFar(endpoints: readonly Endpoint[]): Promise<void> {
  await postern.superuser.query(
    `insert into mail.endpoint_queues (endpoint_id, project_id, last_success_at, published_at)
     select *, postern.now() - interval '2 hours', postern.now() from unnest($1::bigint[], $2::bigint[])`,
    [endpoints.map(({ id }) => id), endpoints.map(({ projectId }) => projectId)],
  )
}

/** The state after four failures: each endpoint is due at some time in the next two hours, with pending events. */
async function deadForAnHour(dead: readonly Endpoint[]): Promise<void> {
  await writeEvents(other, dead, waiting)
  await postern.superuser.query('truncate mail.wakes')
  await postern.superuser.query(
    `update mail.endpoint_queues as queues
        set failures = 4, failing_since = postern.now() - interval '1 hour', backoff_until = rest.until, due_at = rest.until
       from (select endpoint_id, postern.now() + interval '2 hours' * row_number() over (order by endpoint_id * 7919 % 10007)
                    / count(*) over () as until
               from unnest($1::bigint[]) as endpoint_id) as rest
      where queues.endpoint_id = rest.endpoint_id`,
    [dead.map(({ id }) => id)],
  )
}

/**
 * Writes events at a constant rate, to each endpoint in turn. Returns the commit time of each event, by this machine's
 * clock.
 */
async function write(
  client: pg.Client,
  endpoints: readonly Endpoint[],
  skip: number,
  forSeconds: number,
): Promise<Map<string, number>> {
  const committed = new Map<string, number>()
  const startedAt = performance.now()
  for (let done = 0; done < rate * forSeconds; ) {
    const due = Math.min(rate * forSeconds, Math.ceil(((performance.now() - startedAt) / 1000) * rate))
    const next = Array.from(
      { length: due - done },
      (_, index) => endpoints[(skip + done + index) % endpoints.length],
    )
    const ids = await writeEvents(
      client,
      next.filter((endpoint) => endpoint !== undefined),
      1,
    )
    const at = performance.timeOrigin + performance.now()
    for (const id of ids) committed.set(id, at)
    done = due
    await sleep(tickMs)
  }
  return committed
}

/** Returns the delay of each event. Throws unless every event arrived exactly once. */
async function waitsOf(committed: ReadonlyMap<string, number>): Promise<number[]> {
  await receiver.until(warmUpSeconds * rate + committed.size, patienceMs)
  const { ids, times } = await receiver.read()
  const waits = ids.flatMap((id, index) => {
    const at = committed.get(id)
    return at === undefined ? [] : [(times[index] ?? Number.NaN) - at]
  })
  if (waits.length !== committed.size || new Set(ids).size !== ids.length) {
    throw new Error(`${committed.size} events were written, but ${waits.length} arrived`)
  }
  return waits
}

async function used(workerPid: number) {
  const worker = await cpuSeconds(workerPid)
  const pids = [process.pid, receiver.pid, graveyard.pid, postern.pids.api]
  let ours = worker + (await cpuSeconds(postern.pids.postgres, true))
  for (const pid of pids) ours += await cpuSeconds(pid)
  return { worker, ours, machine: await machineCpuSeconds(), at: performance.now() }
}

/** A port without a listener. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' ? (address?.port ?? 0) : 0
}

function summarize({ waits, failed, otherCores }: Measured): string {
  return `p50 ${median(waits).toFixed(0)} ms, p99 ${percentile(waits, 0.99).toFixed(0)} ms, failed ${failed.toFixed(1)}/s (other load: ${otherCores.toFixed(1)} cores)`
}

function ratios(turns: Record<Scenario, Measured>[], scenario: Scenario, at: number): number[] {
  return turns.map((turn) => percentile(turn[scenario].waits, at) / percentile(turn.alone.waits, at))
}

function tableRow(turns: Record<Scenario, Measured>[], scenario: Scenario): string[] {
  const of = (pick: (measured: Measured) => number, digits: number): string =>
    spread(
      turns.map((turn) => pick(turn[scenario])),
      digits,
    )
  const ratioAt = (at: number): string => (scenario === 'alone' ? '' : spread(ratios(turns, scenario, at), 2))
  return [
    scenario,
    of(({ waits }) => percentile(waits, 0.5), 0),
    of(({ waits }) => percentile(waits, 0.99), 0),
    ...[ratioAt(0.5), ratioAt(0.99)],
    of(({ failed }) => failed, 1),
    of(({ workerCores }) => workerCores, 2),
    of(({ otherCores }) => otherCores, 1),
  ]
}
