import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { DatabaseNode } from './node.ts'

/**
 * Writes rows on each node, bypassing HAProxy, and records acknowledged writes with their request time, response time
 * and timeline. If two nodes acknowledge writes at the same time, there is a split brain.
 */
export interface Acknowledged {
  node: string
  number: number
  /** In ms, by this machine's clock. */
  askedAt: number
  answeredAt: number
  timeline: string
}

export interface Watch {
  acknowledged: readonly Acknowledged[]
  /** The longest time between two acknowledged writes in this period. */
  longestGapMs(from: number, to: number): number
  stop(): Promise<void>
}

const everyMs = 100
/** Longer than any acknowledged commit has to wait. */
const patienceMs = 30_000

export async function startWatch(url: string, nodes: readonly DatabaseNode[]): Promise<Watch> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('create table watched (node text, number int, primary key (node, number))')
  await client.end()
  const acknowledged: Acknowledged[] = []
  const stopping = new AbortController()
  const running = nodes.map((node) => watch(node, acknowledged, stopping.signal))
  return {
    acknowledged,
    longestGapMs(from, to) {
      const moments = acknowledged.map(({ answeredAt }) => answeredAt).filter((at) => at > from && at < to)
      return longestGap([from, ...moments, to])
    },
    async stop() {
      stopping.abort()
      await Promise.all(running)
    },
  }
}

export function longestGap(moments: readonly number[]): number {
  const sorted = moments.toSorted((a, b) => a - b)
  return Math.max(0, ...sorted.slice(1).map((at, place) => at - (sorted[place] ?? at)))
}

async function watch(node: DatabaseNode, acknowledged: Acknowledged[], stopping: AbortSignal): Promise<void> {
  const pool = new pg.Pool({
    connectionString: node.url,
    max: 1,
    connectionTimeoutMillis: 3000,
    query_timeout: patienceMs,
  })
  pool.on('error', () => {})
  for (let number = 1; !stopping.aborted; number++) {
    const askedAt = Date.now()
    try {
      // The first eight digits of the name of the current WAL file are the timeline.
      const { rows } = await pool.query<{ timeline: string }>(
        `insert into watched values ($1, $2)
         returning left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) as timeline`,
        [node.name, number],
      )
      const timeline = rows[0]?.timeline ?? ''
      acknowledged.push({ node: node.name, number, askedAt, answeredAt: Date.now(), timeline })
    } catch {
      // The node is a standby or is unavailable.
    }
    await sleep(everyMs)
  }
  await pool.end()
}

/** The faults, as sentences. */
export function splitBrains(acknowledged: readonly Acknowledged[]): string[] {
  const faults: string[] = []
  const timelines = Map.groupBy(acknowledged, ({ timeline }) => timeline)
  for (const [timeline, writes] of timelines) {
    const nodes = new Set(writes.map(({ node }) => node))
    if (nodes.size > 1) faults.push(`${[...nodes].join(' and ')} both wrote on timeline ${timeline}`)
    for (const [later, others] of timelines) {
      if (later <= timeline) continue
      const first = Math.min(...others.map(({ answeredAt }) => answeredAt))
      const late = writes.filter(({ askedAt }) => askedAt > first)
      if (late.length > 0)
        faults.push(`${late.length} writes on timeline ${timeline} after the first one on ${later}`)
    }
  }
  return faults
}

/** Acknowledged writes that are not stored. */
export async function missing(
  query: (text: string) => Promise<{ node: string; number: number }[]>,
  acknowledged: readonly Acknowledged[],
): Promise<Acknowledged[]> {
  const stored = new Set((await query('select node, number from watched')).map(keyOf))
  return acknowledged.filter((write) => !stored.has(keyOf(write)))
}

const keyOf = ({ node, number }: { node: string; number: number }): string => `${node} ${number}`
