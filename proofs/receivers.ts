import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { median, percentile, table } from '../bench/figures.ts'
import { proveIsolation } from './isolation.ts'
import { countsOnlyOption, type FaultReport, prove, type Stage, say, seedOf, waitMs } from './run.ts'
import { type HookReceiver, startHookReceiver } from './webhook-receiver.ts'

/**
 * `npm run prove:receivers`: most receivers are slow, reset connections, do not respond, or transfer one byte per
 * second, and the other endpoints must not be affected. proofs/README.md lists the criteria.
 */
const { values: options } = parseArgs({
  options: {
    'phase-ms': { type: 'string', default: '60000' },
    'ratio-at-most': { type: 'string', default: '1.5' },
    only: { type: 'string' },
    seed: { type: 'string' },
    programs: { type: 'string', default: '2' },
    'pause-ms': { type: 'string', default: '600' },
    'bad-endpoints': { type: 'string', default: '5' },
    'skip-waits': { type: 'boolean', default: false },
    ...countsOnlyOption,
  },
})
const seed = seedOf(options.seed)
const phaseMs = Number(options['phase-ms'])
const ratioAtMost = Number(options['ratio-at-most'])
const isCountsOnly = options['counts-only']
/**
 * The compared percentile. With --skip-waits there are few events of each kind, and the 99th percentile would be the
 * maximum.
 */
const share = options['skip-waits'] ? 0.5 : 0.99
/** The duration of a lease. No lease may be older than twice that. */
const leaseSeconds = 60
/** Shorter than the worker's timeout for a receiver. */
const slowMs = 10_000
const drainMs = waitMs(300_000, isCountsOnly)

/** A temporary fault. `worsen` starts it and returns a function that ends it. */
interface Phase {
  name: string
  worsen(receiver: HookReceiver): () => void
  /** Called instead of `worsen` with --counts-only. Returns the faults. */
  prove?(stage: Stage): Promise<string[]>
}

const nothing: Phase = { name: 'nothing', worsen: () => () => {} }
const bad: Phase[] = [
  {
    name: 'responses after ten seconds',
    worsen(receiver) {
      receiver.slowDown('/bad', slowMs)
      return () => receiver.slowDown('', 0)
    },
    prove: othersAreNotHeld,
  },
  { name: 'half a second latency', worsen: ({ line }) => setting(line, { latencyMs: 500 }) },
  { name: 'resets', worsen: ({ line }) => every(1000, () => line.reset()) },
  { name: 'silence', worsen: ({ line }) => setting(line, { isSilent: true }) },
  { name: 'one byte per second', worsen: ({ line }) => setting(line, { bytesPerSecond: 1 }) },
  {
    // The receiver responds between silences, so its endpoints are healthy each time it stops responding.
    name: 'intermittent silence',
    worsen({ line }) {
      const stop = every(3000, () => Object.assign(line, { isSilent: !line.isSilent }))
      return () => {
        stop()
        Object.assign(line, { isSilent: false })
      }
    },
  },
]
const chosen = bad.filter(({ name }) => options.only === undefined || name.includes(options.only))
// The speed of a machine varies, so the baseline is measured before, between and after the faults.
const half = Math.ceil(chosen.length / 2)
const phases = [nothing, ...chosen.slice(0, half), nothing, ...chosen.slice(half), nothing]

function setting(line: HookReceiver['line'], worse: Partial<HookReceiver['line']>): () => void {
  Object.assign(line, worse)
  return () =>
    Object.assign(line, { latencyMs: 0, isSilent: false, bytesPerSecond: Number.POSITIVE_INFINITY })
}

function every(ms: number, act: () => void): () => void {
  const timer = setInterval(act, ms)
  return () => clearInterval(timer)
}

const receiver = await startHookReceiver()
let since = 0
try {
  await prove({
    title: `faulty receivers, ${phaseMs / 1000} s each`,
    seed,
    load: { programs: Number(options.programs), pauseMs: Number(options['pause-ms']) },
    environment: receiver.settings,
    skipsWaits: options['skip-waits'],
    isCountsOnly,
    injectFaults,
    findFaults: findMissing,
  })
} finally {
  await receiver.close()
}

async function injectFaults(stage: Stage): Promise<FaultReport> {
  await makeEndpoints(stage)
  since = now()
  // A new worker is slow and has no endpoint data yet.
  await sleep(phaseMs / 2)
  const leases = watchLeases(stage)
  const times: { phase: Phase; from: number; to: number }[] = []
  const faults: string[] = []
  for (const phase of phases) {
    // Waits until the effects of the previous phase have ended.
    await caughtUp(stage, 5)
    await resetHealth(stage)
    const from = now()
    if (isCountsOnly && phase.prove) {
      faults.push(...(await phase.prove(stage)))
      times.push({ phase, from, to: now() })
    } else {
      const undo = phase.worsen(receiver)
      await sleep(phaseMs)
      times.push({ phase, from, to: now() })
      undo()
    }
    // Closes connections whose requests might never complete.
    receiver.line.reset()
    say(phase.name)
  }
  await othersHaveAll(stage, times.at(-1)?.to ?? 0)
  const oldest = await leases.stop()
  const delays = times.map(({ from, to }) => delaysOf(from, to))
  const usual = delays.filter((_, place) => times[place]?.phase === nothing).flat()
  const ratio = (place: number): number => percentile(delays[place] ?? [], share) / percentile(usual, share)
  const ratios = times.map((_, place) => ratio(place))
  const arrivals = table(
    ['fault of the others', 'events', 'p50', 'p99', `ratio of p${share * 100}`],
    times.map(({ phase }, place) => {
      const values = delays[place] ?? []
      const figures = [median(values), percentile(values, 0.99)].map((ms) => ms.toFixed(0))
      return [phase.name, String(values.length), ...figures, ratio(place).toFixed(2)]
    }),
  )
  return {
    lines: [
      `the oldest lease was ${oldest.toFixed(0)} s old`,
      ...(isCountsOnly
        ? []
        : [`p${share * 100} of healthy endpoints at most ${Math.max(...ratios).toFixed(2)} times as long`]),
      `Milliseconds from an event to its arrival at healthy endpoints:\n${arrivals}`,
    ],
    inFlight: [],
    faults,
    late: [
      ...times.flatMap(({ phase }, place) =>
        phase === nothing || ratio(place) <= ratioAtMost
          ? []
          : [`${phase.name}: the p${share * 100} of others is ${ratio(place).toFixed(2)} times as long`],
      ),
      ...(oldest <= 2 * leaseSeconds ? [] : [`a lease was ${oldest.toFixed(0)} s old`]),
    ],
  }
}

/**
 * The faulty receivers do not respond. While a request is pending at each of them, events arrive at the healthy ones.
 */
function othersAreNotHeld(stage: Stage): Promise<string[]> {
  const bad = stage.senders.length * Number(options['bad-endpoints'])
  return proveIsolation({
    patienceMs: drainMs,
    enough: 20,
    prepare: () => resetHealth(stage),
    hold: async () => receiver.hold('/bad'),
    release: () => receiver.release(),
    held: () => receiver.held(),
    isFull: async () => receiver.held().paths === bad,
    arrived: async () => receiver.taken.filter(({ path }) => path.startsWith('/good')).length,
  })
}

function now(): number {
  return performance.timeOrigin + performance.now()
}

/** Creates one healthy and several faulty endpoints per project. */
async function makeEndpoints({ postern, senders }: Stage): Promise<void> {
  const token = await postern.token()
  for (const { projectId } of senders) {
    const paths = Array.from({ length: Number(options['bad-endpoints']) }, (_, n) => `/bad-${projectId}-${n}`)
    for (const url of [`${receiver.good}/good-${projectId}`, ...paths.map((path) => receiver.bad + path)]) {
      const response = await fetch(`${postern.url}/v1/admin/projects/${projectId}/endpoints`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'Receiver', url, events: ['message.sent'] }),
      })
      if (response.status !== 201) throw new Error(`${response.status} ${await response.text()}`)
    }
  }
}

/** Makes all pending deliveries due, and waits until none older than this age is pending. Throws after a timeout. */
async function caughtUp({ query }: Stage, ageSeconds: number): Promise<void> {
  for (const deadline = now() + drainMs; now() < deadline; await sleep(1000)) {
    const [row] = await query<{ waiting: number }>(
      `select count(*)::int as waiting from mail.deliveries where event_id < postern.uuid7_floor(postern.now() - interval '1 s' * $1)`,
      [ageSeconds],
    )
    if (row?.waiting === 0) return
    await query(
      `update mail.endpoint_queues set due_at = postern.now()
        where due_at > postern.now() and (leased_until is null or leased_until < postern.now())`,
    )
    await query('update mail.deliveries set due_at = postern.now() where due_at > postern.now()')
  }
  const queues = await query(
    `select queues.*, postern.now() as now, endpoints.url, endpoints.is_active,
            (select count(*) from mail.deliveries where deliveries.endpoint_id = queues.endpoint_id) as waiting,
            (select count(*) from mail.wakes where wakes.endpoint_id = queues.endpoint_id) as wakes
       from mail.endpoint_queues as queues join control.endpoints on endpoints.id = endpoint_id`,
  )
  throw new Error(
    `Pending deliveries are not attempted:\n${queues.map((queue) => JSON.stringify(queue)).join('\n')}`,
  )
}

/** Resets all endpoints to healthy, so an earlier phase does not affect the next one. */
async function resetHealth({ query }: Stage): Promise<void> {
  await query(
    `update mail.endpoint_queues
        set failures = 0, failing_since = null, last_success_at = postern.now(),
            due_at = case when due_at is null then null else postern.now() end
      where leased_until is null or leased_until < postern.now()`,
  )
}

/** Records the age of the oldest lease. */
function watchLeases({ query }: Stage): { stop(): Promise<number> } {
  let oldest = 0
  const readOldest = async (): Promise<void> => {
    const [row] = await query<{ seconds: number | null }>(
      `select extract(epoch from max(postern.now() - leased_until))::float8 + ${leaseSeconds} as seconds
         from mail.endpoint_queues where leased_until is not null`,
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

/** Waits, up to a timeout, until the healthy endpoints have received all events from before this time. */
async function othersHaveAll({ query }: Stage, before: number): Promise<void> {
  const waiting = async (): Promise<number> => {
    const [row] = await query<{ waiting: number }>(
      `select count(*)::int as waiting
         from mail.deliveries join control.endpoints on endpoints.id = endpoint_id
        where url like $1 || '%' and event_id < postern.uuid7_floor(to_timestamp($2 / 1000.0))`,
      [receiver.good, before],
    )
    return row?.waiting ?? 0
  }
  for (const deadline = now() + drainMs; now() < deadline && (await waiting()) > 0; ) await sleep(500)
}

/** Delays of the events in this period. A UUIDv7 begins with its time in ms. */
function delaysOf(from: number, to: number): number[] {
  const first = new Map<string, number>()
  for (const { path, eventId, at } of receiver.taken) {
    if (path.startsWith('/good') && !first.has(eventId)) first.set(eventId, at)
  }
  return Array.from(first, ([id, at]) => {
    const happened = Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)
    return happened >= from && happened < to ? [Math.max(0, at - happened)] : []
  }).flat()
}

/** At the end all endpoints, including the faulty ones, must have received all events. */
async function findMissing(stage: Stage): Promise<string[]> {
  // Ids generated in the same transaction can be a few ms apart.
  await caughtUp(stage, -1)
  const wanted = await stage.query<{ path: string; id: string }>(
    `select substring(endpoints.url from '[^/]*$') as path, events.id
       from mail.events join control.endpoints using (project_id)
      where events.type = any(endpoints.events) and events.id >= postern.uuid7_floor(to_timestamp($1 / 1000.0))`,
    [since],
  )
  const arrived = new Set(receiver.taken.map(({ path, eventId }) => `${path} ${eventId}`))
  const missing = wanted.filter(({ path, id }) => !arrived.has(`/${path} ${id}`))
  const again = receiver.taken.length - arrived.size
  say(`deliveries ${wanted.length}, lost ${missing.length}, arrived more than once ${again} (allowed)`)
  return missing.length === 0 ? [] : [`${missing.length} of ${wanted.length} deliveries never arrived`]
}
