import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Endpoint, forgetWebhooks, makeEndpoints, writeEvents } from './endpoints.ts'
import {
  circumstances,
  cpuSeconds,
  machineAtRest,
  machineCpuSeconds,
  median,
  spread,
  table,
} from './figures.ts'
import { startPostern } from './postern.ts'
import { startReceiver } from './receiver.ts'
import { makeSenders } from './senders.ts'

/**
 * `npm run bench:webhooks`: how many events `postern worker` delivers per second, against undici alone posting the same
 * bodies, to the same receiver in the same run. README.md beside this file says what the figures mean.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    events: { type: 'string', default: '20000' },
    'warm-up': { type: 'string', default: '4000' },
    receivers: { type: 'string', default: '10' },
    'strangers-at-most': { type: 'string', default: 'Infinity' },
    profile: { type: 'string' },
    'worker-alone': { type: 'boolean', default: false },
  },
})
const rounds = Number(options.rounds)
const warmUp = Number(options['warm-up'])
const receivers = Number(options.receivers)
const total = warmUp + Number(options.events)
const strangersAtMost = Number(options['strangers-at-most'])
const goal = 0.5
/** What Postern sends to one endpoint at once. */
const atOnceEach = 10

interface Measured {
  perSecond: number
  /** Of whoever posts, per event. */
  cpuMs: number
  postgresCpuMs: number
  strangersCores: number
}

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const postern = await startPostern()
const receiver = await startReceiver(postern.directory)
const environment = {
  POSTERN_WEBHOOK_PORTS: String(receiver.port),
  POSTERN_PRIVATE_NETWORKS: '127.0.0.0/8',
  POSTERN_WEBHOOK_CA_FILE: receiver.caFile,
}
let body = ''
try {
  const [sender] = await makeSenders(postern, 1)
  const target = `https://127.0.0.1:${receiver.port}/hook`
  const wanted = Array(receivers).fill({ projectId: sender?.projectId ?? 0, target })
  const endpoints = await makeEndpoints(postern, wanted)
  const turns: { worker: Measured; undici: Measured }[] = []
  for (let round = 0; turns.length < rounds && round < 10 * rounds; round++) {
    await machineAtRest(strangersAtMost)
    const worker = await measureWorker(endpoints)
    if (options['worker-alone']) {
      say(
        `worker ${figures(worker)}, ${worker.cpuMs.toFixed(2)} ms, PostgreSQL ${worker.postgresCpuMs.toFixed(2)} ms, alone`,
      )
      if (round + 1 === rounds) break
      continue
    }
    const undici = await measureUndici()
    const isDisturbed = [worker, undici].some(({ strangersCores }) => strangersCores > strangersAtMost)
    if (!isDisturbed) turns.push({ worker, undici })
    say(`worker ${figures(worker)}, undici ${figures(undici)}: ${ratioOf({ worker, undici }).toFixed(2)}`)
  }
  say(`\n${await circumstances(postern.superuser)};`)
  say(
    `${rounds} rounds of ${total - warmUp} events of ${body.length} bytes each, behind ${warmUp} to warm up, to ${receivers} endpoints, ${receivers * atOnceEach} at once;`,
  )
  say(
    'medians (least–most); processor time in ms per event, and in cores for whatever else ran on the machine.\n',
  )
  const head = ['', 'what', 'worker events/s', 'undici events/s', 'ratio', 'goal']
  const rows = turns.length > 0 ? [tableRow(turns)] : []
  say(table([...head, 'CPU: worker', 'PostgreSQL', 'undici', 'strangers'], rows))
} finally {
  receiver.stop()
  await postern.stop()
}

async function measureWorker(endpoints: readonly Endpoint[]): Promise<Measured> {
  await forgetWebhooks(postern)
  await receiver.empty()
  await writeEvents(postern.superuser, endpoints, Math.ceil(total / endpoints.length))
  await postern.superuser.query('vacuum analyze')
  await postern.superuser.query('checkpoint')
  const worker = await postern.start('worker', {
    environment,
    nodeOptions: options.profile ? ['--cpu-prof', `--cpu-prof-dir=${options.profile}`] : [],
  })
  const result = await measured(worker.pid, async () => {
    await receiver.until(total, 30_000)
    await untilEmpty()
  })
  await worker.stop()
  const arrived = await receiver.read()
  body = arrived.body
  const { rows } = await postern.superuser.query<{ outcome: string; count: number }>(
    'select outcome, count(distinct event_id)::int as count from mail.delivery_attempts group by outcome',
  )
  const isWhole = rows.length === 1 && rows[0]?.outcome === 'delivered' && rows[0].count === total
  if (!isWhole || arrived.ids.length !== total || new Set(arrived.ids).size !== total) {
    throw new Error(`${total} were written, ${arrived.ids.length} arrived; ${JSON.stringify(rows)}`)
  }
  return result
}

async function measureUndici(): Promise<Measured> {
  await receiver.empty()
  const file = path.join(postern.directory, 'undici.json')
  const ca = await readFile(receiver.caFile, 'utf8')
  const order = { port: receiver.port, ca, atOnce: receivers * atOnceEach, count: total, body }
  await writeFile(file, JSON.stringify(order))
  const child = fork(path.join(import.meta.dirname, 'undici-process.ts'), [file])
  const ended = once(child, 'exit')
  const result = await measured(child.pid ?? 0, () => receiver.until(total, 30_000))
  child.disconnect()
  await ended
  return result
}

/** Whoever measures starts when the sender is there, and stops when it has nothing more to do. */
async function measured(pid: number, work: () => Promise<void>): Promise<Measured> {
  const used = async () => ({
    sender: await cpuSeconds(pid),
    postgres: await cpuSeconds(postern.pids.postgres, true),
    others:
      (await cpuSeconds(process.pid)) +
      (await cpuSeconds(receiver.pid)) +
      (await cpuSeconds(postern.pids.api)),
    machine: await machineCpuSeconds(),
  })
  const [before, startedAt] = [await used(), performance.now()]
  await work()
  const [after, seconds] = [await used(), (performance.now() - startedAt) / 1000]
  const by = (who: keyof typeof before): number => after[who] - before[who]
  const times = (await receiver.read()).times.toSorted((a, b) => a - b)
  const [first = 0, last = 0] = [times[warmUp - 1], times.at(-1)]
  return {
    perSecond: (times.length - warmUp) / ((last - first) / 1000),
    cpuMs: (by('sender') * 1000) / times.length,
    postgresCpuMs: (by('postgres') * 1000) / times.length,
    strangersCores: Math.max(0, (by('machine') - by('sender') - by('postgres') - by('others')) / seconds),
  }
}

/** The receiver has an event before the worker has written down that it was taken. */
async function untilEmpty(): Promise<void> {
  for (const deadline = Date.now() + 10_000; Date.now() < deadline; await sleep(50)) {
    const { rowCount } = await postern.superuser.query('select from mail.deliveries limit 1')
    if (rowCount === 0) return
  }
  throw new Error('Everything arrived, and some of it is still to be sent.')
}

function figures({ perSecond, strangersCores }: Measured): string {
  return `${perSecond.toFixed(0)}/s (strangers: ${strangersCores.toFixed(1)} cores)`
}

function ratioOf(turn: { worker: Measured; undici: Measured }): number {
  return turn.worker.perSecond / turn.undici.perSecond
}

function tableRow(turns: { worker: Measured; undici: Measured }[]): string[] {
  const [worker, undici] = [turns.map((turn) => turn.worker), turns.map((turn) => turn.undici)]
  const of = (halves: Measured[], pick: (half: Measured) => number, digits: number): string =>
    spread(halves.map(pick), digits)
  const ratios = turns.map(ratioOf)
  return [
    'S7',
    'webhooks to a local receiver',
    of(worker, ({ perSecond }) => perSecond, 0),
    of(undici, ({ perSecond }) => perSecond, 0),
    `${spread(ratios, 2)}${median(ratios) >= goal ? '' : ' **missed**'}`,
    `≥ ${goal}`,
    of(worker, ({ cpuMs }) => cpuMs, 2),
    of(worker, ({ postgresCpuMs }) => postgresCpuMs, 2),
    of(undici, ({ cpuMs }) => cpuMs, 2),
    of([...worker, ...undici], ({ strangersCores }) => strangersCores, 1),
  ]
}
