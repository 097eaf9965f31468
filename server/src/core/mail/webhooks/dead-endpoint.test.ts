import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { Database } from '../../../platform/db/db.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'
import { eventually } from '../../../testing/harness/waiting.ts'
import { type TestEndpoint, webhookHarness } from '../../../testing/harness/webhook-harness.ts'
import { writeEvents } from '../messages/events.ts'

/**
 * An endpoint that is down for three days and then recovers. The database's clock is moved from one due time
 * to the next; the worker and the receiver are real. The expected delays come from a separate table that is
 * independent of the scheduling code.
 *
 * `npm run prove:endpoint` repeats this with more runs and events.
 */
const lives = Number(process.env['POSTERN_TEST_LIVES'] ?? 1)
const events = Number(process.env['POSTERN_TEST_EVENTS'] ?? 24)
const [hour, deadHours, keptHours] = [3_600_000, 72, 28]
const delaysS = [5, 30, 300, 1_800, 7_200, 18_000, 36_000]
const longestS = 36_000

const database = await testDatabase()
const stage = await webhookHarness(database)
const { receiver } = stage
const name = new URL(database.url).pathname.slice(1)

type Mail = ReturnType<Database['as']>

/** Opens new connections, because a session keeps the clock offset with which it began. */
async function at<T>(moment: number, work: (mail: Mail, client: pg.Client) => Promise<T>): Promise<T> {
  const [ahead] = await database.query<{ seconds: string }>(
    'select extract(epoch from to_timestamp($1 / 1000.0) - clock_timestamp()) as seconds',
    [moment],
  )
  await database.query(`alter database ${name} set postern.clock_offset = '${ahead?.seconds} seconds'`)
  const opened = new Database({ url: database.url, applicationName: 'later', poolSize: 4, onError: () => {} })
  const client = new pg.Client({ connectionString: database.superuserUrl })
  await client.connect()
  try {
    return await work(opened.as('mail'), client)
  } finally {
    await client.end()
    await opened.close()
  }
}

/** Busy: the queue is due or leased, or an event is waiting for its fan-out. */
async function stateOf(
  client: pg.Client,
  { id }: TestEndpoint,
): Promise<{ isBusy: boolean; dueAt: number | null }> {
  const { rows } = await client.query<{ is_busy: boolean; due_at: number | null }>(
    `select (extract(epoch from due_at) * 1000)::float8 as due_at,
            leased_until is not null or due_at <= postern.now()
              or exists (select from mail.wakes) or exists (select from mail.fan_outs) as is_busy
       from (select 1) as one left join mail.endpoint_queues on endpoint_id = $1`,
    [id],
  )
  return { isBusy: rows[0]?.is_busy ?? false, dueAt: rows[0]?.due_at ?? null }
}

/**
 * One worker run, with times in milliseconds on the database's clock. On a slow machine, the time between
 * `from` and `to` grows.
 */
interface Step {
  /** The due time that this step handles. The step starts later if the previous one took longer. */
  due: number
  from: number
  to: number
}

/** Runs a worker, starting at the specified time, until it is idle. */
function workAt(moment: number, endpoint: TestEndpoint, first?: (mail: Mail) => Promise<void>) {
  return at(moment, async (mail, client) => {
    await first?.(mail)
    const usual = { requestTimeoutMs: undefined, retryDelayMs: undefined }
    const worker = stage.startWorker({ db: mail, random: () => chance.next(), ...usual })
    const { dueAt } = await eventually('the worker is idle', async () => {
      const state = await stateOf(client, endpoint)
      return !state.isBusy && state
    })
    await worker.stop()
    const { rows } = await client.query<{ now: number }>(
      'select (extract(epoch from postern.now()) * 1000)::float8 as now',
    )
    return { dueAt, to: rows[0]?.now ?? assert.fail() }
  })
}

const chance = new Chance(seed)

/** Simulates an endpoint's lifetime and returns the counts. */
async function runLife() {
  await receiver.down()
  const endpoint = await stage.makeEndpoint(await stage.makeProject())
  const start = Date.now()
  const moments = Array.from({ length: events }, () => start + chance.next() * (deadHours + 4) * hour)
  const waiting = [start, ...moments].toSorted((a, b) => a - b)
  const steps: Step[] = []
  let isAlive = false
  let due: number | null = null
  for (;;) {
    const next = Math.min(waiting[0] ?? Number.POSITIVE_INFINITY, due ?? Number.POSITIVE_INFINITY)
    if (next === Number.POSITIVE_INFINITY) break
    if (!isAlive && next >= start + deadHours * hour) {
      await receiver.up()
      isAlive = true
    }
    const isEvent = waiting[0] === next
    if (isEvent) waiting.shift()
    const event = { type: 'message.delivered', messageId: null, recipientNo: null, data: {} } as const
    const publish = (mail: Mail) =>
      mail.transaction((tx) => writeEvents(tx, [{ ...event, projectId: endpoint.project_id }]))
    const from = Math.max(next, steps.at(-1)?.to ?? 0)
    const { dueAt, to } = await workAt(from, endpoint, isEvent ? publish : undefined)
    steps.push({ due: next, from, to })
    due = dueAt
  }
  return { endpoint, start, ...(await evaluate(endpoint, start, steps)) }
}

async function evaluate(endpoint: TestEndpoint, start: number, steps: readonly Step[]) {
  const moment = `(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint)::float8`
  const attempts = await database.query<{
    at: number
    event_id: string
    outcome: string
    latency_ms: number
    attempt: number
    error: string | null
  }>(
    `select ${moment} as at, event_id, outcome, latency_ms, attempt, error from mail.delivery_attempts
      where endpoint_id = $1 order by id`,
    [endpoint.id],
  )
  const told = await database.query<{ id: string; at: number }>(
    `select id, ${moment} as at from mail.events where project_id = $1`,
    [endpoint.project_id],
  )
  const revived = start + deadHours * hour
  // Ids have a resolution of one millisecond.
  const stepAt = (moment: number): Step =>
    steps.findLast(({ from }) => Math.floor(from) <= moment) ?? assert.fail(`no worker ran at ${moment}`)
  // Events that expired without a request have no attempt time.
  const tried = attempts.filter(
    ({ outcome, error }) => outcome !== 'given_up' || !/not delivered within 28 hours/.test(error ?? ''),
  )
  const probes = tried.filter(({ at }) => at < revived)
  const gaps = probes.slice(1).map(({ at }, no) => ({
    wantedMs: 1000 * (delaysS[no] ?? longestS),
    gotMs: at - (probes[no]?.at ?? 0) - (probes[no]?.latency_ms ?? 0),
    dueMs: stepAt(at).due - stepAt(probes[no]?.at ?? 0).to,
  }))
  for (const { wantedMs, gotMs, dueMs } of gaps) {
    assert.ok(gotMs >= wantedMs * 0.9 - 50, `tried after ${gotMs} ms, wanted ${wantedMs}`)
    assert.ok(dueMs <= wantedMs * 1.1, `due after ${dueMs} ms, wanted ${wantedMs}`)
  }
  const back = tried.find(({ at }) => at >= revived) ?? assert.fail('it was not retried')
  const last = probes.at(-1) ?? assert.fail()
  assert.ok(stepAt(back.at).due - stepAt(last.at).to <= longestS * 1100, 'not later than scheduled')
  const ends = attempts.filter(({ outcome }) => outcome !== 'failed')
  const outcomes = new Map(ends.map(({ event_id, outcome }) => [event_id, outcome]))
  assert.equal(ends.length, told.length, 'each event has one final outcome')
  const within = told.filter((event) => event.at + keptHours * hour > back.at)
  const lost = within.filter(({ id }) => outcomes.get(id) !== 'delivered')
  assert.deepEqual(lost, [], 'every event that has not expired arrives')
  const late = told.filter((event) => event.at + keptHours * hour <= back.at)
  assert.deepEqual(
    late.filter(({ id }) => outcomes.get(id) !== 'given_up'),
    [],
    'expired events do not arrive',
  )
  const arrived = receiver.got
    .filter(({ path }) => path === endpoint.path)
    .map(({ headers }) => headers['webhook-id'])
  assert.deepEqual(new Set(arrived), new Set(within.map(({ id }) => id)))
  assert.equal(arrived.length, within.length, 'each once')
  const strays = gaps.map(({ wantedMs, gotMs }) => gotMs / wantedMs)
  return { told: told.length, probes: probes.length, delivered: within.length, givenUp: late.length, strays }
}

test(`an endpoint that is down for ${deadHours} hours is retried on schedule and receives all events that have not expired (seed ${seed})`, async (t) => {
  // Partitions for the simulated days exist.
  const tally = { lives: 0, told: 0, probes: 0, delivered: 0, givenUp: 0 }
  const strays: number[] = []
  for (; tally.lives < lives; tally.lives++) {
    const life = await runLife()
    for (const key of ['told', 'probes', 'delivered', 'givenUp'] as const) tally[key] += life[key]
    strays.push(...life.strays.slice(2))
    assert.ok(life.delivered > 0 && life.givenUp > 0, JSON.stringify(life))
  }
  const stray = { least: Math.min(...strays).toFixed(3), most: Math.max(...strays).toFixed(3) }
  t.diagnostic(JSON.stringify({ seed, ...tally, delayByPlanFromThirdOn: stray, lostWithinTime: 0 }))
  assert.deepEqual(stage.errors, [])
})
