import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { circumstances, median, percentile, table } from '../bench/figures.ts'
import { startPostern } from '../bench/postern.ts'
import { writeMails } from '../bench/queue.ts'
import { printResult, verdictOf } from '../bench/result.ts'
import { makeSenders } from '../bench/senders.ts'
import { readPostgres } from './crash-points/postgres.ts'
import { openTap, type Passing } from './crash-points/tapped-proxy.ts'
import { countsOnlyOption, reportTimeViolations, say, waitMs } from './run.ts'

/**
 * `npm run prove:snapshot`: a transaction holds an old snapshot, so PostgreSQL cannot vacuum the queue, while messages
 * pass through it. Claims must not become slower. proofs/README.md lists the criteria.
 */
const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    rate: { type: 'string', default: '2000' },
    workers: { type: 'string', default: '1' },
    projects: { type: 'string', default: '4' },
    'claim-p99-ms': { type: 'string', default: '50' },
    /** The minimum throughput, as a share of the requested messages per second. */
    'share-at-least': { type: 'string', default: '0.95' },
    ...countsOnlyOption,
  },
})
const seconds = Number(options.seconds)
const rate = Number(options.rate)
const goalMs = Number(options['claim-p99-ms'])
const isCountsOnly = options['counts-only']
const tickMs = 100
const drainMs = waitMs(15_000, isCountsOnly)

interface Claim {
  /** The time since the start, and the duration, both in ms. */
  at: number
  ms: number
}

const startedAt = performance.now()
const postern = await startPostern()
const clients = await Promise.all(
  ['snapshot', 'feeder', 'looker'].map(async () => {
    const client = new pg.Client({ connectionString: postern.ownerUrl })
    await client.connect()
    return client
  }),
)
const [holder, feeder, looker] = clients as [pg.Client, pg.Client, pg.Client]
const claims: Claim[] = []
const taps = await Promise.all(
  Array.from({ length: Number(options.workers) }, () =>
    openTap(Number(new URL(postern.databaseUrl).port), stopwatch(), readPostgres),
  ),
)
try {
  const senders = await makeSenders(postern, Number(options.projects))
  for (const tap of taps) {
    const through = new URL(postern.databaseUrl)
    through.port = String(tap.port)
    await postern.start('worker', { environment: { POSTERN_DATABASE_URL: through.href } })
  }
  say(`${rate} messages per second for ${seconds} s with an old snapshot`)
  await holder.query('begin isolation level repeatable read')
  await holder.query('select count(*) from mail.dispatch')
  claims.length = 0
  const begin = performance.now()
  const { fed, most } = await feed(senders, begin)
  const fedFor = (performance.now() - begin) / 1000
  const left = await untilEmpty()
  await tell({ fed, fedFor, most, left, begin })
} finally {
  for (const client of clients) await client.end()
  await postern.stop()
  for (const tap of taps) await tap.close()
}

/** The duration of each claim. A worker makes one claim at a time. */
function stopwatch(): (passing: Passing) => boolean {
  let begun = 0
  return ({ text = '', when }) => {
    if (!text.includes('attempt = attempt + 1')) return false
    if (when === 'before') begun = performance.now()
    else claims.push({ at: begun - startedAt, ms: performance.now() - begun })
    return false
  }
}

/** Inserts the messages due at each tick; a late tick inserts all messages that became due in the meantime. */
async function feed(
  senders: Awaited<ReturnType<typeof makeSenders>>,
  begin: number,
): Promise<{ fed: number; most: number }> {
  let fed = 0
  let most = 0
  for (let tick = 0; performance.now() - begin < seconds * 1000; tick++) {
    const due = Math.floor(((performance.now() - begin) / 1000) * rate) - fed
    const sender = senders[tick % senders.length]
    if (due > 0 && sender) await writeMails(feeder, sender, 'none', due)
    fed += due
    if (tick % 100 === 0) {
      const waiting = await backlog()
      most = Math.max(most, waiting)
      if (tick % 500 === 0)
        say(`${((performance.now() - begin) / 1000).toFixed(0)} s: ${fed} messages, ${waiting} queued`)
    }
    await sleep(tickMs)
  }
  return { fed, most }
}

async function backlog(): Promise<number> {
  const { rows } = await looker.query<{ count: string }>('select count(*) from mail.dispatch')
  return Number(rows[0]?.count)
}

/** The number of messages left after draining. */
async function untilEmpty(): Promise<number> {
  const deadline = performance.now() + drainMs
  let left = await backlog()
  while (left > 0 && performance.now() < deadline) {
    await sleep(500)
    left = await backlog()
  }
  return left
}

interface Run {
  fed: number
  fedFor: number
  most: number
  left: number
  begin: number
}

async function tell({ fed, fedFor, most, left, begin }: Run): Promise<void> {
  const { rows } = await looker.query<{ dead: string; sent: string; age: string }>(
    `select (select n_dead_tup from pg_stat_user_tables where schemaname = 'mail' and relname = 'dispatch') as dead,
            (select count(*) from mail.recipients where status = 'delivered') as sent,
            (select max(age(backend_xmin)) from pg_stat_activity where state = 'idle in transaction') as age`,
  )
  const [{ dead = '', sent = '', age = '' } = {}] = rows
  const third = (seconds * 1000) / 3
  const within = (from: number, to: number): number[] =>
    claims
      .filter(({ at }) => at + startedAt >= begin + from && at + startedAt < begin + to)
      .map(({ ms }) => ms)
  const row = (what: string, values: number[]): string[] => [
    what,
    String(values.length),
    ...[median(values), percentile(values, 0.99), Math.max(...values)].map((ms) => ms.toFixed(1)),
  ]
  const all = within(0, Number.POSITIVE_INFINITY)
  say(`\n${await circumstances(looker)};`)
  say(`${fed} messages in ${fedFor.toFixed(0)} s (${(fed / fedFor).toFixed(0)}/s), ${sent} processed;`)
  say(
    `longest queue ${most}, left ${left}; the snapshot is ${age} transactions old, ${dead} dead rows in the queue\n`,
  )
  say(
    table(
      ['claims, ms', 'count', 'p50', 'p99', 'longest'],
      [
        row('all', all),
        row('first third', within(0, third)),
        row('last third', within(2 * third, 3 * third)),
      ],
    ),
  )
  const late = [
    ...(percentile(all, 0.99) <= goalMs ? [] : [`the 99th percentile of claims is over ${goalMs} ms`]),
    ...(fed / fedFor >= rate * Number(options['share-at-least'])
      ? []
      : ['the machine could not create as many messages']),
  ]
  const counted = [
    ...(left === 0 ? [] : [`${left} messages are left`]),
    ...(Number(sent) === fed ? [] : [`${sent} of ${fed} went through`]),
    ...(Number(age) > 0 ? [] : ['no transaction held a snapshot']),
  ]
  const faults = [...counted, ...(isCountsOnly ? [] : late)]
  if (isCountsOnly) reportTimeViolations(late)
  for (const fault of faults) say(`FAULT: ${fault}`)
  const held = isCountsOnly ? 'All messages were processed.' : 'Claims stayed within the limit.'
  say(faults.length === 0 ? held : `${faults.length} kinds of faults.`)
  if (faults.length > 0) process.exitCode = 1
  printResult({
    verdict: verdictOf(counted, late),
    figures: `${fed} messages at ${(fed / fedFor).toFixed(0)}/s, claims p99 ${percentile(all, 0.99).toFixed(1)} ms (goal ≤ ${goalMs}), left ${left}`,
  })
}
