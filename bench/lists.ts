import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import {
  circumstances,
  cpuSeconds,
  machineCpuSeconds,
  median,
  percentile,
  table,
  waitForIdleMachine,
} from './figures.ts'
import { auditCases, type Case, projectCases, searchCases, userCases } from './lists-cases.ts'
import { fillOnce } from './lists-fill.ts'
import { type Plan, planOf, replay } from './lists-replay.ts'
import { type Postern, startPostern } from './postern.ts'
import { printResult, verdictOf } from './result.ts'
import { captureEach, type Statement } from './statements.ts'

/**
 * `npm run bench:lists`: the duration of every list with every filter and sort order, compared with the same statements
 * sent directly to the same PostgreSQL in the same run. bench/README.md explains the figures.
 */
const { values: options } = parseArgs({
  options: {
    projects: { type: 'string', default: '1000000' },
    audit: { type: 'string', default: '10000000' },
    rounds: { type: 'string', default: '3' },
    // Measures only one in this many cases.
    every: { type: 'string', default: '1' },
    only: { type: 'string' },
    data: { type: 'string' },
    json: { type: 'string' },
    'other-load-at-most': { type: 'string', default: 'Infinity' },
  },
})
const sizes = { projects: Number(options.projects), audit: Number(options.audit) }
const rounds = Number(options.rounds)
const goal = { ratio: 3, p99Ms: 100 }

interface Page extends Case {
  rows: number
  /** Whether a page other than the last has fewer rows than the limit. */
  isShort: boolean
  statements: Statement[]
  plans: Plan[]
  apiMs: number[]
  sqlMs: number[]
}

let token = { text: '', drawnAt: 0 }
const otherLoad: number[] = []

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const postern = await startPostern({ data: options.data })
const sql = new pg.Client({
  connectionString: postern.databaseUrl,
  // Like the API's connections.
  options:
    '-c role=postern_admin -c search_path=pg_catalog -c TimeZone=UTC -c jit=off -c statement_timeout=15000',
})
await sql.connect()
try {
  await fillOnce(postern.superuser, sizes, say)
  const everyCase = [...projectCases(), ...userCases(), ...searchCases(), ...(await auditCasesOf(postern))]
  const cases = everyCase.filter(
    ({ group }, index) => index % Number(options.every) === 0 && group.startsWith(options.only ?? ''),
  )
  say(`${cases.length} combinations of filters and orders; each with its second page, if there is one.`)
  const pages = await capture(cases)
  for (const page of pages) page.plans = await planOf(sql, page.statements)
  for (let round = 1; round <= rounds; round++) await measure(pages, round)
  const groups = Object.entries(Object.groupBy(pages, ({ group }) => group)).map(([group, of = []]) =>
    summaryOf(group, of),
  )
  say(`\n${await circumstances(postern.superuser)};`)
  say(`${sizes.projects} projects, ${sizes.audit} audit rows; ${rounds} rounds; times in ms;`)
  say(`other load in cores, by round: ${otherLoad.map((cores) => cores.toFixed(1)).join(', ')}.\n`)
  say(report(groups))
  for (const { group, slowest } of groups)
    say(`\nSlowest of ${group}:\n${slowest.map((line) => `  ${line}`).join('\n')}`)
  for (const line of scans(pages)) say(line)
  const missed = groups.filter((group) => !isMet(group)).map(({ group }) => group)
  const scanned = groups.reduce((sum, { scans: found }) => sum + found, 0)
  const worst = (of: (group: Summary) => number): number => Math.max(...groups.map(of))
  printResult({
    row: 'S5',
    verdict: verdictOf(scanned > 0 ? ['sequential scan'] : [], missed),
    figures: [
      `pages ${pages.length}, worst p99 ${worst(({ api }) => api.p99).toFixed(1)} ms (goal ≤ ${goal.p99Ms})`,
      `worst ratio to SQL ${worst(({ ratio }) => median(ratio.p99)).toFixed(2)} (goal ≤ ${goal.ratio})`,
      `sequential scans ${scanned}`,
      ...(missed.length > 0 ? [`missed: ${missed.join(', ')}`] : []),
    ].join('; '),
  })
  if (options.json)
    await writeFile(options.json, JSON.stringify({ sizes, rounds, otherLoad, groups }, null, 2))
} finally {
  await sql.end()
  await postern.stop()
}

async function auditCasesOf({ superuser }: Postern): Promise<Case[]> {
  const { rows } = await superuser.query<{ first: Date; last: Date }>(
    'select min(at) as first, max(at) as last from control.audit',
  )
  const [span] = rows
  if (!span) throw new Error('There is no audit.')
  return auditCases(span.last, (span.last.getTime() - span.first.getTime()) / 1000)
}

/** Requests one page; a search has only one. */
async function get(path: string): Promise<{ data: unknown[]; next_cursor?: string | null }> {
  if (Date.now() - token.drawnAt > 5 * 60_000) token = { text: await postern.token(), drawnAt: Date.now() }
  const response = await fetch(`${postern.url}/v1/admin${path}`, {
    headers: { authorization: `Bearer ${token.text}` },
  })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`GET ${path}: ${response.status} ${text}`)
  return JSON.parse(text)
}

/** Requests each page once, while PostgreSQL logs the API's statements. */
async function capture(cases: Case[]): Promise<Page[]> {
  const pages: Omit<Page, 'statements'>[] = []
  const visit = async (visited: Case): Promise<string | null> => {
    const { data, next_cursor = null } = await get(visited.path)
    const isShort = next_cursor !== null && data.length < 50
    pages.push({ ...visited, rows: data.length, isShort, plans: [], apiMs: [], sqlMs: [] })
    return next_cursor
  }
  const cursors: (string | null)[] = []
  await get('/plans')
  const first = await captureEach(
    postern,
    cases.map((one) => async () => void cursors.push(await visit(one))),
  )
  const further = cases.flatMap((one, index) => {
    const cursor = cursors[index]
    return cursor ? [{ ...one, path: `${one.path}${one.path.endsWith('?') ? '' : '&'}cursor=${cursor}` }] : []
  })
  const second = await captureEach(
    postern,
    further.map((one) => async () => void (await visit(one))),
  )
  return [...first, ...second].map((statements, index) => {
    const page = pages[index]
    if (!page) throw new Error('A capture has no page.')
    return { ...page, statements: listStatements(statements, page.path) }
  })
}

/** The list's statements: those between BEGIN and COMMIT. The user lookup comes earlier. */
function listStatements(statements: Statement[], path: string): Statement[] {
  const begin = statements.findIndex(({ text }) => /^(begin|start transaction)/i.test(text))
  const commit = statements.findIndex(({ text }) => /^commit/i.test(text))
  if (begin < 0 || commit < begin) throw new Error(`No transaction was captured for ${path}.`)
  return statements.slice(begin, commit + 1)
}

/** Each page is requested from the API and from PostgreSQL, in alternating order. */
async function measure(pages: Page[], round: number): Promise<void> {
  await waitForIdleMachine(Number(options['other-load-at-most']))
  const [startedAt, cpuBefore] = [performance.now(), await otherCpu()]
  for (const [index, page] of pages.entries()) {
    const turns = [
      async () => page.apiMs.push(await timed(() => get(page.path))),
      async () => page.sqlMs.push(await timed(() => replay(sql, page.statements))),
    ]
    for (const turn of (index + round) % 2 ? turns : turns.toReversed()) await turn()
  }
  const seconds = (performance.now() - startedAt) / 1000
  const cores = Math.max(0, ((await otherCpu()) - cpuBefore) / seconds)
  otherLoad.push(cores)
  say(`Round ${round}: ${seconds.toFixed(0)} s; other load: ${cores.toFixed(1)} cores`)
}

/** CPU time used by other processes. */
async function otherCpu(): Promise<number> {
  const { api, postgres } = postern.pids
  const ours = (await cpuSeconds(api)) + (await cpuSeconds(postgres, true)) + (await cpuSeconds(process.pid))
  return (await machineCpuSeconds()) - ours
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

function summaryOf(group: string, pages: Page[]) {
  const [api, sql] = [pages.flatMap(({ apiMs }) => apiMs), pages.flatMap(({ sqlMs }) => sqlMs)]
  const figures = (values: number[]) => ({
    p50: percentile(values, 0.5),
    p99: percentile(values, 0.99),
    most: Math.max(...values),
  })
  const byRound = Array.from({ length: rounds }, (_, round) => {
    const of = (pick: (page: Page) => number[]) =>
      percentile(
        pages.map((page) => pick(page)[round] ?? Number.NaN),
        0.99,
      )
    return of(({ apiMs }) => apiMs) / of(({ sqlMs }) => sqlMs)
  })
  const slowest = pages.toSorted((a, b) => median(b.apiMs) - median(a.apiMs)).slice(0, 5)
  return {
    group,
    pages: pages.length,
    short: pages.filter(({ isShort }) => isShort).length,
    empty: pages.filter(({ isShort, rows }) => isShort && rows === 0).length,
    api: figures(api),
    sql: figures(sql),
    ratio: { p50: percentile(api, 0.5) / percentile(sql, 0.5), p99: byRound },
    scans: pages.flatMap(({ plans }) => plans).filter(({ scanned }) => scanned.length > 0).length,
    slowest: slowest.map(
      (page) => `${median(page.apiMs).toFixed(1)} (SQL ${median(page.sqlMs).toFixed(1)}): ${page.path}`,
    ),
  }
}

type Summary = ReturnType<typeof summaryOf>

function isMet({ api, ratio, scans: found }: Summary): boolean {
  return median(ratio.p99) <= goal.ratio && api.p99 <= goal.p99Ms && found === 0
}

function report(groups: Summary[]): string {
  const ms = (value: number): string => value.toFixed(1)
  const rows = groups.map((summary) => {
    const { group, pages, short, empty, api, sql, ratio, scans } = summary
    const spread = `${median(ratio.p99).toFixed(2)} (${Math.min(...ratio.p99).toFixed(2)}–${Math.max(...ratio.p99).toFixed(2)})`
    return [
      group,
      String(pages),
      `${short} (${empty})`,
      ...[api.p50, api.p99, api.most, sql.p50, sql.p99, sql.most].map(ms),
      ratio.p50.toFixed(2),
      spread,
      String(scans),
      isMet(summary) ? 'met' : '**missed**',
    ]
  })
  const head = ['list', 'pages', 'short (empty)', 'API p50', 'p99', 'most', 'SQL p50', 'p99', 'most']
  return table([...head, 'ratio p50', 'ratio p99', 'sequential scans', 'goal'], rows)
}

function scans(pages: Page[]): string[] {
  const bad = pages.flatMap(({ path, plans }) =>
    plans.flatMap(({ scanned, text }) =>
      scanned.length > 0 ? [`\n${path} scans ${scanned.join(', ')}:\n${text}`] : [],
    ),
  )
  return bad.slice(0, 2)
}
