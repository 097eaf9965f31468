import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { parseArgs } from 'node:util'
import {
  type Arena,
  type Comparison,
  compete,
  type Measured,
  measured,
  outcomeOf,
  printOutcome,
  untilEmpty,
} from './comparison.ts'
import { type Endpoint, forgetWebhooks, makeEndpoints, writeEvents } from './endpoints.ts'
import { circumstances } from './figures.ts'
import { startPostern } from './postern.ts'
import { startReceiver } from './receiver.ts'
import { makeSenders } from './senders.ts'

/**
 * `npm run bench:webhooks`: the number of events that `postern worker` delivers per second, compared with plain undici
 * posting the same bodies to the same receiver in the same run. bench/README.md explains the figures.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    events: { type: 'string', default: '20000' },
    'warm-up': { type: 'string', default: '4000' },
    receivers: { type: 'string', default: '10' },
    'other-load-at-most': { type: 'string', default: 'Infinity' },
    profile: { type: 'string' },
    'worker-alone': { type: 'boolean', default: false },
  },
})
const rounds = Number(options.rounds)
const warmUp = Number(options['warm-up'])
const receivers = Number(options.receivers)
const total = warmUp + Number(options.events)
/** Postern's concurrent requests per endpoint. */
const atOnceEach = 10

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const postern = await startPostern()
const receiver = await startReceiver(postern.directory)
const environment = {
  POSTERN_WEBHOOK_PORTS: String(receiver.port),
  POSTERN_PRIVATE_NETWORKS: '127.0.0.0/8',
  POSTERN_WEBHOOK_CA_FILE: receiver.caFile,
}
const arena: Arena = {
  ...{ postern, receiverPid: receiver.pid, warmUp },
  times: async () => (await receiver.read()).times,
}
let body = ''
try {
  const [sender] = await makeSenders(postern, 1)
  const target = `https://127.0.0.1:${receiver.port}/hook`
  const wanted = Array(receivers).fill({ projectId: sender?.projectId ?? 0, target })
  const endpoints = await makeEndpoints(postern, wanted)
  const comparison: Comparison = {
    ...{ no: 'S7', what: 'webhooks to a local receiver', things: 'events', rival: 'undici', goal: 0.5 },
    ...{ rounds, isWorkerAlone: options['worker-alone'] },
    otherLoadAtMost: Number(options['other-load-at-most']),
    measureWorker: () => measureWorker(endpoints),
    measureRival: measureUndici,
  }
  const turns = await compete(comparison)
  say(`\n${await circumstances(postern.superuser)};`)
  say(
    `${rounds} rounds of ${total - warmUp} events of ${body.length} bytes each, after a warm-up of ${warmUp}, to ${receivers} endpoints, ${receivers * atOnceEach} concurrent requests;`,
  )
  say(outcomeOf(comparison, turns))
  printOutcome(comparison, turns)
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
  const result = await measured(arena, worker.pid, async () => {
    await receiver.until(total, 30_000)
    await untilEmpty(postern, 'mail.deliveries')
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
  const result = await measured(arena, child.pid ?? 0, () => receiver.until(total, 30_000))
  child.disconnect()
  await ended
  return result
}
