import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { circumstances, median, spread, table, waitForIdleMachine } from './figures.ts'
import { type Load, type LoadResult, runPgbench, runWrk } from './load.ts'
import { type Measured, measured, ratioOf, type Turn } from './measured-run.ts'
import { type PgbenchScript, pgbenchScript } from './pgbench-script.ts'
import { type Postern, startPostern } from './postern.ts'
import { printRatio } from './result.ts'
import { captureStatements, type Statement } from './statements.ts'

/**
 * `npm run bench:admin-patch`: the number of administrative edits, each with an audit row, that the API performs per
 * second, compared with pgbench sending the same statements to the same PostgreSQL in the same run. bench/README.md
 * explains the figures.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '12' },
    connections: { type: 'string', default: '32' },
    'pool-size': { type: 'string' },
    only: { type: 'string' },
    protocol: { type: 'string', default: 'prepared' },
    'other-load-at-most': { type: 'string', default: 'Infinity' },
    profile: { type: 'string' },
  },
})
const rounds = Number(options.rounds)
const otherLoadAtMost = Number(options['other-load-at-most'])
const load: Load = { seconds: Number(options.seconds), connections: Number(options.connections) }

// A multiple of the number of connections, so pgbench's clients never conflict.
const projectCount = 64 * load.connections
const firstProject = 700_001
const lua = path.join(import.meta.dirname, 'patch-projects.lua')
// Like the API's connections, except for the role: the API looks up the user as postern_identity on a second
// connection, and a pgbench client has only one.
const sessionOptions = '-c role=postern_admin -c search_path=pg_catalog -c TimeZone=UTC'

interface Scenario {
  id: string
  what: string
  projects: number
  goal: number
}

const scenarios: Scenario[] = [
  { id: 'S3', what: 'edits of distinct projects', projects: projectCount, goal: 0.6 },
  { id: 'S4', what: 'edits of one project', projects: 1, goal: 0.7 },
].filter(({ id }) => options.only === undefined || options.only === id)

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const postern = await startPostern({
  environment: options['pool-size'] ? { POSTERN_DATABASE_POOL_SIZE: options['pool-size'] } : {},
  nodeOptions: options.profile ? ['--cpu-prof', `--cpu-prof-dir=${options.profile}`] : [],
})
const scriptFile = path.join(postern.directory, 'edit.sql')
let wrkRuns = 0
try {
  await makeProjects(postern)
  const script = await captureScript(postern)
  await writeFile(scriptFile, script.text)
  say(`One edit, as pgbench sends it in the mode "${options.protocol}":\n\n${script.text}`)
  say(`The API has ${script.preparedByApi} of these statements prepared.\n`)

  // A process spends its first seconds compiling, and pgbench needs every chain to exist.
  for (let seconds = 5; (await tally(postern)).chains < projectCount; seconds *= 2) {
    await measureApi({ ...load, seconds }, projectCount)
  }
  await measurePgbench({ ...load, seconds: 2 }, projectCount, script)

  const measurements: { scenario: Scenario; turns: Turn[] }[] = []
  for (const scenario of scenarios) {
    const turns: Turn[] = []
    while (turns.length < rounds) {
      await waitForIdleMachine(otherLoadAtMost)
      const turn = {
        api: await measureApi(load, scenario.projects),
        pgbench: await measurePgbench(load, scenario.projects, script),
      }
      const isDisturbed = Object.values(turn).some(({ otherCores }) => otherCores > otherLoadAtMost)
      if (!isDisturbed) turns.push(turn)
      say(`${scenario.id}: ${summary(turn)}${isDisturbed ? '; disturbed by other load, not counted' : ''}`)
    }
    measurements.push({ scenario, turns })
  }
  say(`\n${await circumstances(postern.superuser)}; ${load.connections} connections;`)
  say(`${rounds} rounds of ${load.seconds} s; medians (min–max); CPU time in ms per edit,`)
  say(`and in cores for other load on the machine.\n`)
  const head = ['', 'what', 'API /s', 'pgbench /s', 'ratio', 'goal', 'p50 ms', 'p99 ms']
  const rows = measurements.map(({ scenario, turns }) => tableRow(scenario, turns))
  say(table([...head, 'CPU: API', 'PostgreSQL', 'PostgreSQL with pgbench', 'other load'], rows))
  for (const { scenario, turns } of measurements)
    printRatio(scenario.id, 'ratio to pgbench', turns.map(ratioOf), { atLeast: scenario.goal })
} finally {
  await postern.stop()
}

function summary(turn: Turn): string {
  const figures = ({ perSecond, succeeded, otherCores }: Measured): string =>
    `${perSecond.toFixed(0)}/s (${succeeded} edits, all accounted for; other load: ${otherCores.toFixed(1)} cores)`
  return `API ${figures(turn.api)}, pgbench ${figures(turn.pgbench)}`
}

function tableRow({ id, what, goal }: Scenario, turns: Turn[]): string[] {
  const [api, pgbench] = [turns.map((turn) => turn.api), turns.map((turn) => turn.pgbench)]
  const of = (halves: Measured[], pick: (half: Measured) => number, digits: number): string =>
    spread(halves.map(pick), digits)
  const ratios = turns.map(ratioOf)
  return [
    id,
    what,
    of(api, ({ perSecond }) => perSecond, 0),
    of(pgbench, ({ perSecond }) => perSecond, 0),
    `${spread(ratios, 2)}${median(ratios) >= goal ? '' : ' **missed**'}`,
    `≥ ${goal}`,
    of(api, ({ p50Ms }) => p50Ms ?? Number.NaN, 1),
    of(api, ({ p99Ms }) => p99Ms ?? Number.NaN, 1),
    of(api, ({ cpuMs }) => cpuMs.api, 2),
    of(api, ({ cpuMs }) => cpuMs.postgres, 2),
    of(pgbench, ({ cpuMs }) => cpuMs.postgres, 2),
    of([...api, ...pgbench], ({ otherCores }) => otherCores, 1),
  ]
}

/**
 * Inserts projects by SQL, because this many requests would take too long. The rows are the same as those the API
 * writes.
 */
async function makeProjects({ superuser }: Postern): Promise<void> {
  const ids = `generate_series(${firstProject}, ${firstProject + projectCount - 1}) as id`
  await superuser.query(`
    insert into control.users (email, name) values ('owner@example.com', 'Olive');
    insert into control.plans (name, description, support_level, max_domains, max_users, max_mails_per_day,
                               max_mails_per_month, price)
    values ('Bench', 'For measuring', 'email', 10, 10, 1000, 10000, 9.90);
    insert into control.projects (id, user_id, name, plan_id, version) overriding system value
    -- Versions far apart, so no two numbers in a capture are equal by chance.
    select id, (select id from control.users where email = 'owner@example.com'), 'Project ' || id,
           (select max(id) from control.plans), 10 * id
    from ${ids};
    insert into control.project_stats (project_id) select id from ${ids};
    insert into control.members (project_id, user_id, email, name, role, joined_at)
    select project.id, owner.id, owner.email, owner.name, 'owner', now()
    from control.projects as project join control.users as owner on owner.id = project.user_id;
  `)
}

/**
 * Captures three edits, two of them on the same project, with the statements that the API sent and the values it wrote.
 * A parameter that equals a written value in all three edits is assumed to be that value; `answers` specifies the
 * response that the value came from.
 */
async function captureScript(postern: Postern): Promise<PgbenchScript> {
  const token = await postern.token()
  const captures: Statement[][] = []
  const written: Record<string, string>[] = []
  // Not captured: statements that a new process sends once, such as the lookup of token keys.
  await edit(postern, token, firstProject, 'Capture 0')
  await edit(postern, token, firstProject + 1, 'Capture 0')
  for (const [index, project] of [firstProject, firstProject, firstProject + 1].entries()) {
    const name = `Capture ${index + 1}`
    captures.push(await captureStatements(postern, () => edit(postern, token, project, name)))
    written.push({ name, ...(await lastAudit(postern, project)) })
  }
  const was = (field: string): string[] => written.map((row) => row[field] ?? '')
  return pgbenchScript(captures, {
    variables: {
      project: was('chain'),
      name: was('name'),
      next_version: was('version'),
      next_seq: was('seq'),
      head_id: was('id'),
      head_at: was('at'),
      head_xid: was('xid'),
      head_hash: was('prev_hash'),
    },
    preamble: [
      // Each client uses its own projects; if there is only one project, all clients use it.
      '\\set n :n + 1',
      '\\set project :first + mod(:client_id + :clients * :n, :projects)',
      '\\set name 1000000000 * (1 + :client_id) + :n',
    ].join('\n'),
    answers: [
      { of: /for no key update of projects/i, take: '\\gset found_\n\\set next_version :found_version + 1' },
      { of: /audit_heads[\s\S]*for update/i, take: '\\gset head_\n\\set next_seq :head_seq + 1' },
    ],
  })
}

async function edit({ url }: Postern, token: string, project: number, name: string): Promise<void> {
  const response = await fetch(`${url}/v1/admin/projects/${project}`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name }),
  })
  if (response.status !== 200) throw new Error(`PATCH: ${response.status} ${await response.text()}`)
}

/** Formatted like parameters in PostgreSQL's log. */
async function lastAudit({ superuser }: Postern, project: number): Promise<Record<string, string>> {
  const { rows } = await superuser.query<Record<string, string>>(
    `select chain::text, seq::text, id::text, xid::text, encode(prev_hash, 'hex') as prev_hash,
            (at at time zone 'UTC')::text || '+00' as at,
            (select version::text from control.projects where id = chain) as version
     from control.audit where chain = $1 order by seq desc limit 1`,
    [project],
  )
  return rows[0] ?? {}
}

async function measureApi(load: Load, projects: number): Promise<Measured> {
  const token = await postern.token()
  // An edit that keeps the existing name would change nothing and cost little.
  const args = [token, firstProject, projects, ++wrkRuns].map(String)
  // When wrk exits, it aborts the requests in progress; they are written but not counted.
  return accounted('The API', load.connections, () => runWrk(load, postern.url, lua, args))
}

async function measurePgbench(load: Load, projects: number, script: PgbenchScript): Promise<Measured> {
  const variables = { n: 0, first: firstProject, clients: load.connections, projects, ...script.constants }
  return accounted('pgbench', 0, () =>
    runPgbench(load, postern.databaseUrl, sessionOptions, {
      file: scriptFile,
      protocol: options.protocol,
      variables,
    }),
  )
}

/** Checks that every successful request has written an audit row and a new version, and that there are no others. */
async function accounted(
  who: string,
  unheardAtMost: number,
  run: () => Promise<LoadResult>,
): Promise<Measured> {
  // Cleans up after the previous measurement.
  await postern.superuser.query('vacuum analyze')
  await postern.superuser.query('checkpoint')
  const before = await tally(postern)
  return measured(postern, run, async (result) => {
    const after = await tally(postern)
    const rows = after.audit - before.audit
    const versions = after.versions - before.versions
    const unheard = rows - result.succeeded
    if (result.failed > 0 || versions !== rows || unheard < 0 || unheard > unheardAtMost) {
      throw new Error(
        `${who}'s figures do not agree: ${result.succeeded} successes, ${result.failed} failures, ` +
          `${rows} audit rows, ${versions} versions changed.`,
      )
    }
    return rows
  })
}

/** Counted as the superuser, independently of the API. */
async function tally({ superuser }: Postern): Promise<{ audit: number; chains: number; versions: number }> {
  const { rows } = await superuser.query<{ audit: string; chains: string; versions: string }>(
    `select count(*) as audit, count(distinct chain) as chains,
            (select sum(version) from control.projects) as versions
     from control.audit`,
  )
  const [row] = rows
  return { audit: Number(row?.audit), chains: Number(row?.chains), versions: Number(row?.versions) }
}
