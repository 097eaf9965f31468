import { parseArgs } from 'node:util'
import pg from 'pg'
import { startCluster } from '../server/src/testing/peers/postgres.ts'
import { circumstances, percentile, table } from './figures.ts'
import { fillMail } from './growth-mail.ts'
import { fillProjects } from './growth-projects.ts'
import { startPostern } from './postern.ts'
import { printResult } from './result.ts'

/**
 * `npm run bench:message-search`: the duration of `messages.search` and `trace.find` over many messages, in one or two
 * cells. bench/README.md explains the figures.
 */
const { values: options } = parseArgs({
  options: {
    messages: { type: 'string', default: '1000000' },
    projects: { type: 'string', default: '10000' },
    days: { type: 'string', default: '30' },
    cells: { type: 'string', default: '1' },
    requests: { type: 'string', default: '300' },
  },
})
const [messages, projects, days] = [options.messages, options.projects, options.days].map(Number)
const hasTwoCells = options.cells === '2'
const requests = Number(options.requests)
const goalMs = 100
/** Messages to one address, most of which do not match the filter. */
const popularCount = 20_000
const popular = 'popular@example.net'

const say = (text: string): void => void process.stdout.write(`${text}\n`)
const pick = (bound: number): number => Math.floor(Math.random() * bound)

// The second cell is a second database in the same cluster. Its URL is known when the cluster has started.
const environment: Record<string, string> = {}
const postern = await startPostern({
  environment,
  ...(hasTwoCells && { cluster: startWithTwoDatabases }),
})
try {
  await fillProjects(postern.superuser, projects ?? 0, 1)
  const urls = [postern.ownerUrl, ...(hasTwoCells ? [secondOf(postern.ownerUrl)] : [])]
  for (const url of urls) {
    const share = Math.floor((messages ?? 0) / urls.length)
    await fillMail(url, { messages: share, projects: projects ?? 0, days: days ?? 1 }, say)
    await addPopular(url)
  }
  const token = { text: await postern.token(), drawnAt: Date.now() }
  const ask = async (path: string, body?: object): Promise<number> => {
    if (Date.now() - token.drawnAt > 5 * 60_000)
      Object.assign(token, { text: await postern.token(), drawnAt: Date.now() })
    const startedAt = performance.now()
    const response = await fetch(`${postern.url}/v1/admin${path}`, {
      method: body ? 'POST' : 'GET',
      headers: {
        authorization: `Bearer ${token.text}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`)
    return performance.now() - startedAt
  }
  const perDay = Math.floor((messages ?? 0) / urls.length / (days ?? 1))
  const samples = await sampleOf(urls)
  const sample = () => samples[pick(samples.length)] ?? { id: '', queue_id: '' }
  const cases: Record<string, () => Promise<number>> = {
    'recipient of 30 days': () => ask(`/messages?recipient=ada${1 + pick(perDay)}@example.net`),
    'recipient and status': () =>
      ask(`/messages?recipient=ada${1 + pick(perDay)}@example.net&status=bounced`),
    'recipient without mail': () => ask(`/messages?recipient=none${pick(1e9)}@example.net`),
    'popular recipient, rare status': () => ask(`/messages?recipient=${popular}&status=bounced`),
    sender: () => ask(`/messages?sender=sender${1 + pick(projects ?? 1)}.example.com`),
    'trace, Message-ID': () => ask('/trace', { text: `<${sample().id}@sender1.example.com>` }),
    'trace, queue id': () => ask('/trace', { text: sample().queue_id }),
    'trace, 50 Message-IDs': () =>
      ask('/trace', { text: Array.from({ length: 50 }, () => sample().id).join('\n') }),
  }
  const rows: string[][] = []
  const late: string[] = []
  let worst = 0
  for (const [name, request] of Object.entries(cases)) {
    await request()
    const times: number[] = []
    for (let n = 0; n < requests; n++) times.push(await request())
    const p99 = percentile(times, 0.99)
    const isBulk = name.includes('50')
    if (!isBulk) worst = Math.max(worst, p99)
    if (p99 > goalMs && !isBulk) late.push(name)
    rows.push([name, ...[percentile(times, 0.5), p99, Math.max(...times)].map((ms) => ms.toFixed(1))])
  }
  say(`\n${await circumstances(postern.superuser)};`)
  say(
    `${messages} messages in ${days} days, ${projects} projects, ${options.cells} cells; ${requests} requests each; ms.\n`,
  )
  say(table(['request', 'p50', 'p99', 'most'], rows))
  printResult({
    verdict: late.length > 0 ? 'missed' : 'reached',
    figures: `${messages} messages, ${options.cells} cells: worst p99 ${worst.toFixed(1)} ms (goal ≤ ${goalMs})${late.map((name) => `; missed: ${name}`).join('')}`,
  })
} finally {
  await postern.stop()
}

async function startWithTwoDatabases(home: string) {
  const cluster = await startCluster({ directory: home })
  const ownerUrl = secondOf(cluster.url)
  await onDatabase(cluster.url, (client) => client.query('create database postern_second'))
  environment['POSTERN_CELLS'] = JSON.stringify([
    { name: 'a', shards: '0-511' },
    {
      ...{ name: 'b', shards: '512-1023' },
      ...{ url: ownerUrl.replace(/(?<=:\/\/)postgres\b/, 'postern_app'), owner_url: ownerUrl },
    },
  ])
  return cluster
}

function secondOf(url: string): string {
  const second = new URL(url)
  second.pathname = '/postern_second'
  return second.href
}

async function onDatabase<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

async function addPopular(url: string): Promise<void> {
  await onDatabase(url, (client) =>
    client.query(
      `with made as (
         insert into mail.messages (id, project_id, identity_id, from_address, recipient_count, size_bytes)
         select postern.uuid7(postern.now() - n * interval '1 millisecond'), 1 + n % 100, 1, 'shop@sender1.example.com', 1, 1
           from generate_series(1, $1::int) as n returning id, project_id)
       insert into mail.recipients (message_id, recipient_no, project_id, kind, address, status)
       select id, 0, project_id, 'to', $2, 'delivered' from made`,
      [popularCount, popular],
    ),
  )
}

/** Messages of all days. */
async function sampleOf(urls: readonly string[]): Promise<{ id: string; queue_id: string }[]> {
  const found = await Promise.all(
    urls.map((url) =>
      onDatabase(url, async (client) => {
        const share = Math.min(100, (2_000 * 100) / (messages ?? 1))
        const { rows } = await client.query<{ id: string; queue_id: string }>(
          `select message_id as id, queue_id from mail.attempts tablesample system (${share}) limit 5000`,
        )
        return rows
      }),
    ),
  )
  return found.flat()
}
