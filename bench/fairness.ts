import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { circumstances, median, percentile, table } from './figures.ts'
import { startPostern } from './postern.ts'
import { acceptOne, forgetMail, writeMails } from './queue.ts'
import { printResult } from './result.ts'
import { makeSampleMessage } from './sample-message.ts'
import { makeSenders, type Sender } from './senders.ts'
import { startSink } from './sink.ts'

/**
 * `npm run bench:fairness`: the time from acceptance to receipt by the MTA for a project that sends one message per
 * second, alone and next to another project with 200,000 queued messages. bench/README.md explains the figures.
 */
const { values: options } = parseArgs({
  options: {
    queued: { type: 'string', default: '200000' },
    mails: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '3' },
    'pause-ms': { type: 'string', default: '1000' },
    'ratio-at-most': { type: 'string', default: '2' },
  },
})
const queued = Number(options.queued)
const mails = Number(options.mails)
const rounds = Number(options.rounds)
const pauseMs = Number(options['pause-ms'])
const goal = Number(options['ratio-at-most'])

// Longer than a lease. Once a lease expires, a lost worker's messages are sent again.
const patienceMs = 90_000

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const postern = await startPostern()
const sink = await startSink(path.join(postern.directory, 'received'))
try {
  const [large, small] = await makeSenders(postern, 2)
  if (!large || !small) throw new Error('there are no senders')
  const turns: { alone: number[]; beside: number[] }[] = []
  for (let round = 1; round <= rounds; round++) {
    const alone = await measure(small)
    const beside = await measure(small, large)
    turns.push({ alone, beside })
    say(`round ${round}: alone ${summarize(alone)}; beside ${summarize(beside)}`)
  }
  const all = (of: 'alone' | 'beside'): number[] => turns.flatMap((turn) => turn[of])
  const ratio = percentile(all('beside'), 0.99) / percentile(all('alone'), 0.99)
  say(`\n${await circumstances(postern.superuser)};`)
  say(`${rounds} rounds of ${mails} messages, one every ${pauseMs} ms; ms from acceptance to the MTA.\n`)
  const row = (what: string, values: number[]): string[] => [
    what,
    ...[median(values), percentile(values, 0.9), percentile(values, 0.99), Math.max(...values)].map((value) =>
      value.toFixed(0),
    ),
  ]
  const rows = [row('alone', all('alone')), row(`beside ${queued} mails of another`, all('beside'))]
  say(table(['R11', 'p50', 'p90', 'p99', 'longest'], rows))
  say(`\nRatio of the 99th percentiles: ${ratio.toFixed(2)}; goal: at most ${goal}.`)
  if (ratio > goal) process.exitCode = 1
  printResult({
    row: 'R11',
    verdict: ratio <= goal ? 'reached' : 'missed',
    figures: `p99 ${ratio.toFixed(2)} times as long with a backlog of ${queued} messages, goal ≤ ${goal}, messages ${all('beside').length}`,
  })
} finally {
  sink.stop()
  await postern.stop()
}

function summarize(values: number[]): string {
  return `p50 ${median(values).toFixed(0)} ms, p99 ${percentile(values, 0.99).toFixed(0)} ms`
}

/** Measured from the API's response. */
async function measure(sender: Sender, backlogged?: Sender): Promise<number[]> {
  await forgetMail(postern)
  await sink.empty()
  if (backlogged) await fill(backlogged, queued)
  const worker = await postern.start('worker', {
    environment: { POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${sink.port}` },
  })
  // By now the worker has started and had time to compile.
  for (let warmUp = 0; warmUp < 5; warmUp++) await send(sender, pauseMs)
  const accepted = new Map<string, number>()
  for (let count = 0; count < mails; count++) {
    const { id, at } = await send(sender, pauseMs)
    accepted.set(id, at)
  }
  if (backlogged && (await isGone(backlogged)))
    throw new Error('The backlog was empty before the end: increase --queued.')
  const waited = await waitsOf(accepted)
  await worker.kill()
  if (waited.length !== mails)
    throw new Error(`${mails} messages were accepted, but ${waited.length} received`)
  return waited
}

/**
 * The delays of all messages, once all have arrived or the wait has timed out. Messages that did not arrive are
 * omitted.
 */
async function waitsOf(accepted: ReadonlyMap<string, number>): Promise<number[]> {
  for (const deadline = Date.now() + patienceMs; ; await sleep(200)) {
    const waited = (await sink.read()).flatMap(({ messageId, at }) => {
      const acceptedAt = accepted.get(messageId.split('@')[0] ?? '')
      return acceptedAt === undefined ? [] : [at - acceptedAt]
    })
    if (waited.length >= accepted.size || Date.now() > deadline) return waited
  }
}

async function isGone({ projectId }: Sender): Promise<boolean> {
  const { rowCount } = await postern.superuser.query(
    'select from mail.dispatch where project_id = $1 limit 1',
    [projectId],
  )
  return rowCount === 0
}

async function send(sender: Sender, pause: number): Promise<{ id: string; at: number }> {
  const next = performance.now() + pause
  const id = await acceptOne(postern, sender, makeSampleMessage())
  const at = performance.timeOrigin + performance.now()
  await sleep(Math.max(0, next - performance.now()))
  return { id, at }
}

async function fill(backlogged: Sender, count: number): Promise<void> {
  await writeMails(postern.superuser, backlogged, 'service', count)
  await postern.superuser.query('vacuum analyze')
  await postern.superuser.query('checkpoint')
}
