import { readFile, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { spread } from '../bench/figures.ts'
import type { Promised } from './check.ts'
import { isWell, startTrio, type Trio } from './failover/cluster.ts'
import { type DatabaseNode, until } from './failover/node.ts'
import { longestGap, missing, splitBrains, startWatch, type Watch } from './failover/split-brain.ts'
import { Chance } from './random.ts'
import { waitForRecovery } from './recovery.ts'
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
 * `npm run prove:failover`: three PostgreSQL servers under Patroni and etcd behind HAProxy (deploy/patroni). The
 * faults, injected under load: the primary is killed, only the primary's Patroni is killed, or the synchronous standby
 * is paused. proofs/README.md lists the criteria.
 */
const { values: options } = parseArgs({
  options: {
    kills: { type: 'string', default: '5' },
    orphans: { type: 'string', default: '2' },
    pauses: { type: 'string', default: '5' },
    seed: { type: 'string' },
    programs: { type: 'string', default: '6' },
    'pause-ms': { type: 'string', default: '200' },
    'skip-waits': { type: 'boolean', default: false },
    ...countsOnlyOption,
  },
})
const seed = seedOf(options.seed)
const chance = new Chance(seed)
const gapAtMostMs = 45_000
const isCountsOnly = options['counts-only']
const rejoinWithinMs = waitMs(180_000, isCountsOnly)

/** Data that must be identical on all three nodes at the end. */
const contents = `select (select count(*) from mail.messages) as messages, (select count(*) from mail.events) as events,
  (select md5(string_agg(message_id::text || recipient_no || status, ',' order by message_id, recipient_no))
     from mail.recipients) as recipients`

/** A fault injected into a node, and how to reverse it. */
interface Mishap {
  name: string
  times: number
  victim: 'leader' | 'sync_standby'
  strike(node: DatabaseNode): Promise<void>
  undo(node: DatabaseNode): Promise<void>
}

const mishaps: Mishap[] = [
  {
    name: 'primary killed',
    times: Number(options.kills),
    victim: 'leader',
    strike: (node) => node.kill(),
    undo: async (node) => node.revive(),
  },
  {
    name: "primary's Patroni killed",
    times: Number(options.orphans),
    victim: 'leader',
    strike: (node) => node.killPatroni(),
    undo: async (node) => node.revive(),
  },
  {
    name: 'standby paused',
    times: Number(options.pauses),
    victim: 'sync_standby',
    strike: (node) => node.pause(),
    undo: (node) => node.resume(),
  },
]

interface Struck {
  mishap: Mishap
  node: DatabaseNode
  /** The longest time between two accepted messages, and between two acknowledged writes. */
  mailGapMs: number
  writeGapMs: number
  /** The time until the node rejoined the cluster. */
  rejoinedMs: number
  /** Whether the node rejoined with pg_rewind or with a new base backup. */
  rewound: boolean
  copied: boolean
}

let trio: Trio | undefined
let watch: Watch | undefined
try {
  await prove({
    title: `Failover: ${mishaps.map(({ name, times }) => `${name} × ${times}`).join(', ')}`,
    seed,
    load: { programs: Number(options.programs), pauseMs: Number(options['pause-ms']) },
    skipsWaits: options['skip-waits'],
    isCountsOnly,
    cluster: async (home) => {
      trio = await startTrio(home)
      return trio
    },
    injectFaults,
    findFaults,
  })
} finally {
  await watch?.stop()
}

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('not started')
  return value
}

async function injectFaults(stage: Stage): Promise<FaultReport> {
  const { url, nodes } = known(trio)
  watch = await startWatch(url, nodes)
  const leased = leaseReader(stage)
  const inFlight: Promised[][] = []
  const struck: Struck[] = []
  for (const mishap of mishaps) {
    for (let time = 1; time <= mishap.times; time++) {
      await allWell()
      await sleep(chance.between(1000, 3000))
      const node = known(await known(trio).find(mishap.victim))
      const before = await leased()
      const done = await strike(stage, mishap, node)
      inFlight.push([...before, ...(await leased())])
      struck.push(done)
      const { mailGapMs, writeGapMs, rejoinedMs, rewound } = done
      say(
        `${mishap.name} (${node.name}): no message accepted for ${mailGapMs.toFixed(0)} ms, no write for ` +
          `${writeGapMs} ms, back after ${rejoinedMs} ms${rewound ? ', rewound' : ''}`,
      )
    }
  }
  await sleep(2000)
  return { lines: struckLines(struck), inFlight, faults: struckFaults(struck), late: struckLate(struck) }
}

/** Waits until all nodes have their roles and both standbys are streaming. */
function allWell(): Promise<void> {
  const { members, find } = known(trio)
  const isSo = async (): Promise<boolean> => {
    if (!isWell(await members())) return false
    const primary = known(await find('leader'))
    return (await ask(primary, `select from pg_stat_replication where state = 'streaming'`)).length === 2
  }
  return until(() => isSo().catch(() => false), 'all three nodes have their roles', rejoinWithinMs)
}

async function strike({ loadResults, sink }: Stage, mishap: Mishap, node: DatabaseNode): Promise<Struck> {
  const { size: said } = await stat(node.log)
  const startedAt = Date.now()
  await mishap.strike(node)
  await until(async () => {
    const found = await known(trio).find(mishap.victim)
    return found !== undefined && found !== node
  }, `another node becomes the ${mishap.victim}`)
  await waitForRecovery({ loadResults, sink }, isCountsOnly)(Date.now())
  const endedAt = Date.now()
  await mishap.undo(node)
  await allWell()
  const log = (await readFile(node.log)).subarray(said).toString()
  const promised = loadResults.promised.map(({ at }) => at)
  return {
    mishap,
    node,
    mailGapMs: longestGap(promised.filter((at) => at > startedAt - 1000 && at < endedAt)),
    writeGapMs: known(watch).longestGapMs(startedAt - 1000, endedAt),
    rejoinedMs: Date.now() - endedAt,
    rewound: log.includes('running pg_rewind'),
    copied: /reinitializ|bootstrap from leader|replica has been created/.test(log),
  }
}

function struckLines(struck: readonly Struck[]): string[] {
  return mishaps
    .filter(({ times }) => times > 0)
    .map((mishap) => {
      const of = struck.filter((one) => one.mishap === mishap)
      const ms = (what: 'mailGapMs' | 'writeGapMs' | 'rejoinedMs'): string =>
        spread(of.map((one) => one[what]))
      return (
        `${mishap.name} ${of.length} times; ms without an accepted message ${ms('mailGapMs')}, without a write ` +
        `${ms('writeGapMs')}, until the node was back ${ms('rejoinedMs')}; rewound ${of.filter(({ rewound }) => rewound).length}`
      )
    })
}

function struckFaults(struck: readonly Struck[]): string[] {
  return struck.flatMap(({ mishap, node, copied }) =>
    copied ? [`${mishap.name}: ${node.name} was cloned again from the primary`] : [],
  )
}

function struckLate(struck: readonly Struck[]): string[] {
  return struck.flatMap(({ mishap, mailGapMs, writeGapMs }) =>
    Math.max(mailGapMs, writeGapMs) <= gapAtMostMs
      ? []
      : [
          `${mishap.name}: ${mailGapMs.toFixed(0)} ms without an accepted message, ${writeGapMs} without a write`,
        ],
  )
}

/** Checks for split brain, lost writes, and differences between the nodes. */
async function findFaults(stage: Stage): Promise<string[]> {
  const { acknowledged, stop } = known(watch)
  await stop()
  await allWell()
  const { nodes, find, members } = known(trio)
  const primary = known(await find('leader'))
  const lost = await missing((text) => ask(primary, text), acknowledged)
  const different = await differences(nodes)
  const timelines = [...new Set(acknowledged.map(({ timeline }) => Number.parseInt(timeline, 16)))]
  const [last] = await members()
  say(
    `watched ${acknowledged.length} acknowledged writes on timelines ${timelines.sort((a, b) => a - b).join(', ')}; ` +
      `lost ${lost.length}; all nodes on timeline ${last?.timeline}`,
  )
  say(
    `answers: ${JSON.stringify(countsOf(stage.loadResults.answers.map(({ status, error }) => `${status} ${error}`)))}`,
  )
  return [
    ...splitBrains(acknowledged),
    ...(lost.length > 0
      ? [`${lost.length} watched writes are lost, such as ${JSON.stringify(lost[0])}`]
      : []),
    ...different,
  ]
}

function countsOf(words: readonly string[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(words, (word) => word)].map(([word, all]) => [word, all.length]))
}

/** Standbys lag slightly behind, so differences are checked repeatedly. */
async function differences(nodes: readonly DatabaseNode[]): Promise<string[]> {
  let found: string[] = []
  for (const deadline = Date.now() + 30_000; Date.now() < deadline; await sleep(500)) {
    found = await Promise.all(
      nodes.map(async (node) => JSON.stringify(await ask(node, contents, 'postern')).replaceAll('"', '')),
    )
    if (new Set(found).size === 1) return []
  }
  return [`the nodes differ: ${found.join(' ')}`]
}

async function ask<T extends pg.QueryResultRow>(
  { url }: DatabaseNode,
  text: string,
  database = 'postgres',
): Promise<T[]> {
  const client = new pg.Client({
    connectionString: url.replace(/postgres$/, database),
    connectionTimeoutMillis: 5000,
    query_timeout: 20_000,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query<T>(text)).rows
  } finally {
    await client.end().catch(() => {})
  }
}
