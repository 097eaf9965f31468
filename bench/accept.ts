import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { plainAcceptance } from './accept-plain.ts'
import { captureAcceptance } from './accept-script.ts'
import { circumstances, median, spread, table, waitForIdleMachine } from './figures.ts'
import { type LoadResult, runPgbench, runWrk } from './load.ts'
import { type Measured, measured, ratioOf, type Turn } from './measured-run.ts'
import type { PgbenchScript } from './pgbench-script.ts'
import { startPostern } from './postern.ts'
import { printRatio } from './result.ts'
import { makeSampleMessage } from './sample-message.ts'
import { makeSenders, type Sender } from './senders.ts'

/**
 * `npm run bench:accept`: the number of messages that the API accepts per second, compared with pgbench writing the
 * same rows to the same PostgreSQL in the same run. bench/README.md explains the figures.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '10' },
    only: { type: 'string' },
    protocol: { type: 'string', default: 'prepared' },
    'other-load-at-most': { type: 'string', default: 'Infinity' },
    profile: { type: 'string' },
    'api-alone': { type: 'boolean', default: false },
  },
})
const rounds = Number(options.rounds)
const seconds = Number(options.seconds)
const otherLoadAtMost = Number(options['other-load-at-most'])

// Like the API's connections.
const sessionOptions = Object.entries({
  role: 'postern_mail',
  search_path: 'pg_catalog',
  TimeZone: 'UTC',
  jit: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_seqscan: 'off',
})
  .map(([name, value]) => `-c ${name}=${value}`)
  .join(' ')

interface Scenario {
  id: string
  what: string
  goal: number
  connections: number
  senders: number
  /** Messages per request; 0 means a single message that is not sent as a batch. */
  mails: number
}

const one = { goal: 1.3, connections: 64, mails: 0 }
const many = { goal: 0.6, connections: 8, mails: 100 }
const scenarios: Scenario[] = [
  { id: 'S1', what: 'one by one, each connection its project', ...one, senders: 64 },
  { id: 'S1 hot', what: 'one by one, all of one project', ...one, senders: 1 },
  { id: 'S2', what: 'batches of 100, each connection its project', ...many, senders: 8 },
  { id: 'S2 hot', what: 'batches of 100, all of one project', ...many, senders: 1 },
  // `S1` includes `S1 hot`.
].filter(({ id }) => id.startsWith(options.only ?? ''))

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const postern = await startPostern({
  nodeOptions: options.profile ? ['--cpu-prof', `--cpu-prof-dir=${options.profile}`] : [],
})
const lua = path.join(import.meta.dirname, 'send-messages.lua')
const messageFile = path.join(postern.directory, 'message.json')
const sendersFile = path.join(postern.directory, 'senders')
let runs = 0
try {
  const senders = await makeSenders(postern, Math.max(...scenarios.map((scenario) => scenario.senders)))
  const sampleMessage = {
    from: 'Shop <shop@sender.invalid>',
    to: ['ada000000000000@example.net'],
    ...makeSampleMessage(),
  }
  await writeFile(messageFile, JSON.stringify(sampleMessage))
  await writeFile(sendersFile, senders.map(({ secret, domain }) => `${secret} ${domain}\n`).join(''))
  say(`A message is ${JSON.stringify(sampleMessage).length} bytes of JSON.`)

  const measurements: { scenario: Scenario; turns: Turn[] }[] = []
  for (const scenario of scenarios) {
    const script = await prepare(scenario, senders, sampleMessage)
    // A process spends its first seconds compiling.
    await measureApi(scenario, 4)
    if (options['api-alone']) {
      // For profiling. Without a comparison, no ratio is computed and no table row is written.
      for (let round = 0; round < rounds; round++) {
        const { perSecond } = await measureApi(scenario, seconds)
        say(`${scenario.id}: API ${Math.round(perSecond)}/s, alone`)
      }
      continue
    }
    const turns: Turn[] = []
    while (turns.length < rounds) {
      await waitForIdleMachine(otherLoadAtMost)
      const turn = {
        api: await measureApi(scenario, seconds),
        pgbench: await measurePgbench(scenario, senders, script),
      }
      const isDisturbed = Object.values(turn).some(({ otherCores }) => otherCores > otherLoadAtMost)
      if (!isDisturbed) turns.push(turn)
      say(`${scenario.id}: ${summary(turn)}${isDisturbed ? '; disturbed by other load, not counted' : ''}`)
    }
    measurements.push({ scenario, turns })
  }
  say(`\n${await circumstances(postern.superuser)};`)
  say(`${rounds} rounds of ${seconds} s; medians (min–max); CPU time in ms per message,`)
  say(`and in cores for other load on the machine.\n`)
  const head = ['', 'what', 'API mails/s', 'pgbench mails/s', 'ratio', 'goal', 'p50 ms', 'p99 ms']
  const rows = measurements.map(({ scenario, turns }) => tableRow(scenario, turns))
  say(table([...head, 'CPU: API', 'PostgreSQL', 'PostgreSQL with pgbench', 'other load'], rows))
  for (const { scenario, turns } of measurements) {
    const [row = ''] = scenario.id.split(' ')
    printRatio(row, `${scenario.what}: ratio to pgbench`, turns.map(ratioOf), {
      atLeast: scenario.goal,
    })
  }
} finally {
  await postern.stop()
}

async function prepare(scenario: Scenario, senders: Sender[], sampleMessage: object): Promise<PgbenchScript> {
  const [sender] = senders
  if (!sender) throw new Error('there is no sender')
  const script =
    scenario.mails === 0
      ? await plainAcceptance(postern, sender, sampleMessage)
      : await captureAcceptance(postern, senders, sampleMessage, scenario.mails)
  await writeFile(scriptFileOf(scenario), script.text)
  say(`\n${scenario.id}, as pgbench sends it in the mode "${options.protocol}":\n\n${script.text}`)
  return script
}

function scriptFileOf({ id }: Scenario): string {
  return path.join(postern.directory, `${id.replace(' ', '-')}.sql`)
}

function measureApi(scenario: Scenario, forSeconds: number): Promise<Measured> {
  const { connections, mails } = scenario
  const args = [messageFile, sendersFile, String(scenario.senders), String(mails)]
  // When wrk exits, it aborts the requests in progress; they are written but not counted.
  return accounted('The API', scenario, connections, () =>
    runWrk({ seconds: forSeconds, connections }, postern.url, lua, args),
  )
}

function measurePgbench(scenario: Scenario, senders: Sender[], script: PgbenchScript): Promise<Measured> {
  const { connections } = scenario
  const [sender] = senders
  if (!sender) throw new Error('there is no sender')
  const variables = {
    n: 0,
    first: sender.projectId,
    senders: scenario.senders,
    identity_offset: sender.identityId - sender.projectId,
    key_offset: sender.apiKeyId - sender.projectId,
    // The timestamp in the id. It is unique to this run.
    prefix: (Date.now() + ++runs).toString(16).padStart(12, '0'),
    ...script.constants,
  }
  return accounted('pgbench', scenario, 0, () =>
    runPgbench({ seconds, connections }, postern.databaseUrl, sessionOptions, {
      file: scriptFileOf(scenario),
      protocol: options.protocol,
      variables,
    }),
  )
}

/**
 * Checks that every successful request has written the rows for its messages, and that there are no other rows. `run`
 * counts requests; the result counts messages.
 */
async function accounted(
  who: string,
  { mails }: Scenario,
  unheardAtMost: number,
  run: () => Promise<LoadResult>,
): Promise<Measured> {
  const perRequest = Math.max(1, mails)
  // Each measurement starts with empty tables, so it does not have to clean up after the previous one.
  await postern.superuser.query(
    'truncate mail.messages, mail.recipients, mail.bodies, mail.dispatch, mail.events, mail.usage',
  )
  // These rows are created with the first message of the day; pgbench's script was recorded from a later message.
  await postern.superuser.query(
    `insert into mail.usage (project_id, period, starts_on)
     select id, period, date_trunc(period, postern.now() at time zone 'UTC')::date
       from control.projects, unnest(array['day', 'month']) as period`,
  )
  await postern.superuser.query('vacuum analyze')
  await postern.superuser.query('checkpoint')
  const result = await measured(postern, run, async ({ succeeded, failed }) => {
    const rows = await tally()
    const [written = 0] = rows
    const unheard = written / perRequest - succeeded
    if (failed > 0 || rows.some((row) => row !== written) || unheard < 0 || unheard > unheardAtMost) {
      throw new Error(
        `inconsistent counts for ${who}: ${succeeded} successes, ${failed} failures; rows: ${rows.join(', ')}.`,
      )
    }
    return written
  })
  return { ...result, perSecond: result.perSecond * perRequest }
}

/** The number of rows of each kind, counted as the superuser, independently of the API. */
async function tally(): Promise<number[]> {
  const { rows } = await postern.superuser.query<Record<string, string>>(
    `select (select count(*) from mail.messages) as messages, (select count(*) from mail.recipients) as recipients,
            (select count(*) from mail.bodies) as bodies, (select count(*) from mail.dispatch) as dispatch,
            (select count(*) from mail.events) as events,
            (select sum(accepted) from mail.usage where period = 'day') as today,
            (select sum(accepted) from mail.usage where period = 'month') as this_month`,
  )
  return Object.values(rows[0] ?? {}).map(Number)
}

function summary(turn: Turn): string {
  const figures = ({ perSecond, succeeded, otherCores }: Measured): string =>
    `${perSecond.toFixed(0)}/s (${succeeded} responses, all accounted for; other load: ${otherCores.toFixed(1)} cores)`
  const ratio = ratioOf(turn).toFixed(2)
  return `API ${figures(turn.api)}, pgbench ${figures(turn.pgbench)}: ${ratio}`
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
    of(api, ({ cpuMs }) => cpuMs.api, 3),
    of(api, ({ cpuMs }) => cpuMs.postgres, 3),
    of(pgbench, ({ cpuMs }) => cpuMs.postgres, 3),
    of([...api, ...pgbench], ({ otherCores }) => otherCores, 1),
  ]
}
