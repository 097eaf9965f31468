import { writeFile } from 'node:fs/promises'
import { loadavg } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { circumstances, median, percentile, spread, table } from './figures.ts'
import { fillMail, type Stored } from './growth-mail.ts'
import { fillProjects, memberOf } from './growth-projects.ts'
import { runWrk } from './load.ts'
import { type Postern, startPostern } from './postern.ts'
import { printRatio } from './result.ts'
import { makeSampleMessage } from './sample-message.ts'
import { type Timed, timeStatements } from './timings.ts'

/**
 * `npm run bench:growth`: measures whether acceptance and claims become slower as the number of messages and projects
 * grows. Two installations are measured alternately: a new one and one that grows. bench/README.md explains the
 * figures.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '8' },
    waiting: { type: 'string', default: '6000' },
    'up-to': { type: 'string', default: '10000000' },
    only: { type: 'string' },
    data: { type: 'string' },
  },
})
const rounds = Number(options.rounds)
const seconds = Number(options.seconds)
const waiting = Number(options.waiting)
const goal = 1.3
const connections = 64
/** The maximum number of projects that send, and the maximum number with queued mail. */
const sendersAtMost = 1000

/** 30 days is the default retention. */
const steps: Stored[] = [
  { messages: 100_000, projects: 1_000, days: 30 },
  { messages: 1_000_000, projects: 1_000, days: 30 },
  { messages: 1_000_000, projects: 100_000, days: 30 },
  { messages: 10_000_000, projects: 100_000, days: 30 },
]
const smallest: Stored = { messages: 10_000, projects: 10, days: 1 }

interface Side {
  postern: Postern
  stored: Stored
}

interface Measured {
  /** Accepted messages per second. */
  accepted: number
  p50Ms: number
  /** For each claim, the combined duration of the statement that leases messages and the statement that reads them. */
  claimMs: number[]
  lookMs: number[]
  finishMs: number[]
  mailsPerClaim: number
}

interface Turn {
  small: Measured
  large: Measured
}

/** The id columns of the tables partitioned by day. */
const idColumns = {
  messages: 'id',
  recipients: 'message_id',
  bodies: 'message_id',
  attempts: 'message_id',
  events: 'id',
}

const say = (text: string): void => void process.stdout.write(`${text}\n`)
const lua = path.join(import.meta.dirname, 'send-messages.lua')

/** With these settings, no WAL is written for tables created in the same transaction, so filling them is faster. */
const settings = {
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '8GB',
  checkpoint_timeout: '15min',
}

const sides: Side[] = []
try {
  const small = await open(undefined, smallest)
  const large = await open(options.data, { messages: 0, projects: 0, days: 0 })
  await grow(small, smallest)
  const rows: string[][] = []
  const results: { stored: Stored; turns: Turn[] }[] = []
  for (const step of steps.filter(isAskedFor)) {
    await grow(large, step)
    const turns = await compare(small, large)
    rows.push(await tableRow(large, turns))
    results.push({ stored: step, turns })
  }
  say(`\n${await circumstances(small.postern.superuser)};`)
  say(
    `${rounds} rounds of ${seconds} s and of ${waiting} queued messages, alternating with an installation of`,
  )
  say(`${describe(smallest)}; medians (min–max of the rounds); load average ${loadavg()[0]?.toFixed(1)}.\n`)
  const head = ['stored', 'S1 mails/s', 'smallest', 'slower by', 'claim ms', 'smallest', 'slower by']
  say(table([...head, 'finish ms', 'smallest', 'look ms', 'smallest', 'GB'], rows))
  for (const { stored, turns } of results) {
    const [what, goalAtMost] = [describe(stored), { atMost: goal }]
    printRatio('S8', `${what}: slowdown of acceptance`, turns.map(acceptanceRatio), goalAtMost)
    printRatio('S8', 'slowdown of claims', turns.map(claimRatio), goalAtMost)
  }
} finally {
  for (const { postern } of sides) await postern.stop()
}

function isAskedFor({ messages, projects }: Stored): boolean {
  if (options.only !== undefined) return options.only === `${messages}/${projects}`
  return messages <= Number(options['up-to'])
}

function describe({ messages, projects, days }: Stored): string {
  const [mails, owners] = [messages, projects].map((count) => count.toLocaleString('en-GB'))
  return `${mails} messages of ${owners} projects in ${days === 1 ? 'one day' : `${days} days`}`
}

async function open(data: string | undefined, stored: Stored): Promise<Side> {
  const side = { postern: await startPostern({ data, settings }), stored }
  sides.push(side)
  return side
}

/** Reuses the data if the database was kept from an earlier run. */
async function grow(side: Side, stored: Stored): Promise<void> {
  const { superuser, databaseUrl } = side.postern
  side.stored = stored
  const { rows } = await superuser.query<{ messages: string; projects: string }>(
    `select (select count(*) from mail.bodies) as messages, (select count(*) from control.projects) as projects`,
  )
  if (Number(rows[0]?.messages) === stored.messages && Number(rows[0]?.projects) === stored.projects) return
  say(`Generating ${describe(stored)}:`)
  await fillProjects(superuser, stored.projects, sendersAtMost)
  for (const name of ['fsync', 'autovacuum']) await setting(side, name, 'off')
  await fillMail(databaseUrl.replace(/\/\/[^@]+@/, '//postgres@'), stored, say)
  for (const name of ['fsync', 'autovacuum']) await setting(side, name, 'on')
}

async function setting({ postern: { superuser } }: Side, name: string, value: string): Promise<void> {
  await superuser.query(`alter system set ${name} = '${value}'`)
  await superuser.query('select pg_reload_conf()')
  await sleep(200)
}

async function compare(small: Side, large: Side): Promise<Turn[]> {
  const turns: Turn[] = []
  // A process spends its first seconds compiling, and the first write to a page after a checkpoint logs a full-page
  // image: a thousand projects write to ten thousand pages, ten projects only to a few. No other checkpoint occurs
  // before the end.
  for (const side of [small, large]) await accept(side, 2 * seconds)
  for (let round = 1; round <= rounds; round++) {
    const turn = { small: await measure(small), large: await measure(large) }
    turns.push(turn)
    say(
      `${describe(large.stored)}, round ${round}: ${summary(turn.large)}; smallest: ${summary(turn.small)}; load ${loadavg()[0]?.toFixed(1)}`,
    )
  }
  return turns
}

async function measure(side: Side): Promise<Measured> {
  const { perSecond, p50Ms } = await accept(side, seconds)
  const statements = await claim(side)
  const claims = timesOf(statements, /^\s*with lane as materialized/)
  const letters = timesOf(statements, /^\s*select messages\.id as message_id/)
  return {
    accepted: perSecond,
    p50Ms,
    // An empty claim reads no messages.
    claimMs: claims.slice(0, letters.length).map((ms, place) => ms + (letters[place] ?? 0)),
    lookMs: timesOf(statements, /^\s*with recursive lane/),
    finishMs: timesOf(statements, /^\s*with result as materialized/),
    mailsPerClaim: waiting / letters.length,
  }
}

function timesOf(statements: Timed[], kind: RegExp): number[] {
  return statements.filter(({ text }) => kind.test(text)).map(({ ms }) => ms)
}

/** S1: POST /v1/messages over 64 connections, each message from a different project. */
async function accept(side: Side, forSeconds: number): Promise<{ perSecond: number; p50Ms: number }> {
  const { postern, stored } = side
  const messageFile = path.join(postern.directory, 'message.json')
  const sendersFile = path.join(postern.directory, 'senders')
  const sampleMessage = {
    from: 'Shop <shop@sender.invalid>',
    to: ['ada000000000000@example.net'],
    ...makeSampleMessage(),
  }
  const senders = Array.from({ length: Math.min(stored.projects, sendersAtMost) }, (_, place) =>
    memberOf(place + 1),
  )
  await writeFile(messageFile, JSON.stringify(sampleMessage))
  await writeFile(sendersFile, senders.map(({ secret, domain }) => `${secret} ${domain}\n`).join(''))
  const since = await beginning(side)
  const args = [messageFile, sendersFile, String(senders.length), '0']
  const {
    succeeded,
    failed,
    perSecond,
    p50Ms = Number.NaN,
  } = await runWrk({ seconds: forSeconds, connections }, postern.url, lua, args)
  const accepted = await acceptedInTheEnd(side)
  const unheard = accepted - succeeded
  if (failed > 0 || unheard < 0 || unheard > connections) {
    throw new Error(`${succeeded} messages were accepted, ${failed} were not, and ${accepted} are stored.`)
  }
  await forgetSince(side, since)
  return { perSecond, p50Ms }
}

/** When wrk exits, it aborts the requests in progress; their messages are still written shortly afterwards. */
async function acceptedInTheEnd({ postern }: Side): Promise<number> {
  for (let before = -1; ; await sleep(1000)) {
    const { rows } = await postern.superuser.query<{ count: string }>('select count(*) from mail.dispatch')
    const count = Number(rows[0]?.count)
    if (count === before) return count
    before = count
  }
}

/** A worker processes queued messages sent with test keys. They are claimed like any others but not sent. */
async function claim(side: Side): Promise<Timed[]> {
  const { postern, stored } = side
  const since = await beginning(side)
  const lanes = Math.min(stored.projects, sendersAtMost)
  await postern.superuser.query(
    `with made as materialized (
       select postern.uuid7(postern.now()) as id, 1 + (no % $2::int) * $3::bigint as project_id, 'ada' || no || '@example.net' as address
         from generate_series(1, $1::int) as no
     ), message as (
       insert into mail.messages (id, project_id, identity_id, api_key_id, is_test, from_address, subject, recipient_count,
                                  size_bytes)
       select id, project_id, project_id, project_id, true, 'shop@sender' || project_id || '.example.com', 'Waiting', 1, 200
         from made
     ), body as (
       insert into mail.bodies (message_id, project_id, format, content)
       select id, project_id, 'json', convert_to(repeat('x', 400), 'UTF8') from made
     ), recipient as (
       insert into mail.recipients (message_id, recipient_no, project_id, kind, address, status)
       select id, 0, project_id, 'to', address, 'queued' from made
     )
     insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient)
     select id, 0, project_id, project_id, 'none', address from made`,
    [waiting, lanes, Math.floor(stored.projects / lanes)],
  )
  await postern.superuser.query('analyze mail.dispatch')
  const statements = await timeStatements(postern, 'postern worker', async () => {
    const worker = await postern.start('worker')
    await untilSent(side)
    await worker.stop()
  })
  await forgetSince(side, since)
  return statements
}

async function untilSent({ postern }: Side): Promise<void> {
  for (const deadline = Date.now() + 120_000; Date.now() < deadline; await sleep(100)) {
    const { rowCount } = await postern.superuser.query('select from mail.dispatch limit 1')
    if (rowCount === 0) return
  }
  throw new Error('The queue was not empty after two minutes.')
}

async function beginning({ postern }: Side): Promise<string> {
  const { rows } = await postern.superuser.query<{ id: string }>(
    'select postern.uuid7_floor(postern.now()) as id',
  )
  return rows[0]?.id ?? ''
}

/** Restores the previous state, so a measurement does not affect the next one. */
async function forgetSince({ postern: { superuser } }: Side, since: string): Promise<void> {
  await superuser.query('truncate mail.dispatch')
  for (const [name, id] of Object.entries(idColumns)) {
    await superuser.query(`delete from mail.${name} where ${id} >= $1`, [since])
  }
  const { rows } = await superuser.query<{ names: string }>(
    `select string_agg('mail.' || name || to_char(postern.now() at time zone 'UTC', '_YYYYMMDD'), ', ') as names
       from unnest($1::text[]) as name`,
    [Object.keys(idColumns)],
  )
  await superuser.query(`vacuum analyze ${rows[0]?.names}, mail.usage, mail.daily_counters, mail.dispatch`)
}

function summary({ accepted, claimMs, lookMs, finishMs, mailsPerClaim }: Measured): string {
  const ms = (values: number[]): string => median(values).toFixed(2)
  return `${accepted.toFixed(0)}/s, claim ${ms(claimMs)} ms (p90 ${percentile(claimMs, 0.9).toFixed(2)}, ${mailsPerClaim.toFixed(0)} mails), look ${ms(lookMs)} ms, finish ${ms(finishMs)} ms`
}

function acceptanceRatio({ small, large }: Turn): number {
  return small.accepted / large.accepted
}

function claimRatio({ small, large }: Turn): number {
  return median(large.claimMs) / median(small.claimMs)
}

async function tableRow({ postern, stored }: Side, turns: Turn[]): Promise<string[]> {
  const of = (side: 'small' | 'large', pick: (half: Measured) => number, digits: number): string =>
    spread(
      turns.map((turn) => pick(turn[side])),
      digits,
    )
  const ratio = (slower: (turn: Turn) => number): string => {
    const ratios = turns.map(slower)
    return `**${spread(ratios, 2)}**${median(ratios) <= goal ? '' : ', missed'}`
  }
  const [claimed, finished, looked] = (['claimMs', 'finishMs', 'lookMs'] as const).map(
    (name) => (half: Measured) => median(half[name]),
  ) as [(half: Measured) => number, (half: Measured) => number, (half: Measured) => number]
  const { rows } = await postern.superuser.query<{ gb: string }>(
    `select round(pg_database_size('postern') / 1e9, 1) as gb`,
  )
  return [
    describe(stored),
    of('large', ({ accepted }) => accepted, 0),
    of('small', ({ accepted }) => accepted, 0),
    ratio(acceptanceRatio),
    of('large', claimed, 2),
    of('small', claimed, 2),
    ratio(claimRatio),
    of('large', finished, 2),
    of('small', finished, 2),
    of('large', looked, 2),
    of('small', looked, 2),
    rows[0]?.gb ?? '',
  ]
}
