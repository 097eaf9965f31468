import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ampleByteLimits } from '../../../testing/fixtures/byte-limits.ts'
import { fixtures } from '../../../testing/fixtures/fixtures.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { Acceptance } from '../messages/acceptance.ts'
import { readDraft } from '../messages/draft.ts'
import { type EndedAttempt, recordAttempts } from './attempt-recorder.ts'
import { type ClaimCapacity, type Claimed, ClaimQueue } from './claims.ts'
import { keepPartitions } from './partitions.ts'
import { ResultPublisher } from './results.ts'

/** Tests the queue without a dispatcher: scheduling, leases, and projects that cannot send mail. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDomain, makePlan } = fixtures(database, admin)
const opened = openDatabase(database, { poolSize: 8 })
const mail = opened.as('mail')
const acceptance = new Acceptance(mail, ['service'], ampleByteLimits)
const plan = await makePlan({ max_mails_per_day: 1_000_000, max_mails_per_month: 1_000_000 })

async function makeSender() {
  const { id } = await makeProject({ plan_id: plan.id })
  const { name } = await makeDomain(id, { mta_provider: 'service', status: 'verified' })
  return { id, name }
}

type Sender = Awaited<ReturnType<typeof makeSender>>

async function send({ id, name }: Sender, count: number, send_at: string | null = null): Promise<string[]> {
  const draft = readDraft(
    { from: `a@${name}`, to: ['b@example.net'], subject: 's', text: 't', send_at },
    Date.now(),
  )
  const answer = await acceptance.accept({
    sender: { projectId: id, apiKey: null, userId: 1 },
    mails: Array.from({ length: count }, () => draft),
  })
  assert.ok('outcomes' in answer)
  return answer.outcomes.map((one) => {
    assert.ok('accepted' in one)
    return one.accepted.id
  })
}

const capacity = (free: number, capacityFor: ClaimCapacity['for'] = () => 1000): ClaimCapacity => ({
  free,
  freeLarge: 2,
  for: capacityFor,
})

async function claim(queue: ClaimQueue, free: number): Promise<Claimed[]> {
  await queue.refreshLanes()
  return (await queue.claim(capacity(free))).map(({ claimed }) => claimed)
}

const ended = (claimed: Claimed, changes: Partial<EndedAttempt['decision']> = {}): EndedAttempt => ({
  claimed,
  status: null,
  isTest: false,
  decision: {
    host: 'mta.example',
    queueId: '4bX',
    outcome: 'sent',
    reply: '250 queued',
    retrySeconds: null,
    status: 'sent',
    ...changes,
  },
})

const publisher = new ResultPublisher(mail, { suppressOn: new Set(['5.1.1']), onError: assert.ifError })

async function finish(...all: EndedAttempt[]): Promise<void> {
  publisher.publish(await mail.transaction((tx) => recordAttempts(tx, all)))
  await publisher.settled()
}

async function empty(): Promise<void> {
  await database.query('delete from mail.dispatch')
}

async function statusOf(id: string): Promise<string | undefined> {
  const [row] = await database.query<{ status: string }>(
    'select status from mail.recipients where message_id = $1',
    [id],
  )
  return row?.status
}

const eventsOf = async (id: string): Promise<string[]> =>
  (
    await database.query<{ type: string }>(
      'select type from mail.events where message_id = $1 order by created_at, id',
      [id],
    )
  ).map(({ type }) => type)

/** Simulates the passage of time by moving all timestamps into the past. */
const age = (what: string) =>
  database.query(
    `update mail.dispatch set due_at = due_at - $1::interval, leased_until = leased_until - $1::interval,
       first_attempt_at = first_attempt_at - $1::interval`,
    [what],
  )

describe('a claim', () => {
  test('takes an equal share from every project, regardless of how much mail each has', async () => {
    await empty()
    const [large, small, tiny] = [await makeSender(), await makeSender(), await makeSender()]
    await send(large, 400)
    await send(small, 30)
    await send(tiny, 1)
    const queue = new ClaimQueue(mail)
    const shares = async () => {
      const claimed = await claim(queue, 30)
      return [large, small, tiny].map(({ id }) => claimed.filter((row) => row.project_id === id).length)
    }
    assert.deepEqual(await shares(), [10, 10, 1])
    const second = await shares()
    assert.ok((second[1] ?? 0) >= 10, `the small project is served in the next round: ${second}`)
  })

  test('never leases a message to two of eight concurrent workers', async () => {
    await empty()
    const at = await makeSender()
    await send(at, 500)
    const workers = Array.from({ length: 8 }, () => new ClaimQueue(mail))
    const seen: string[] = []
    await Promise.all(
      workers.map(async (queue) => {
        for (let claimed = await claim(queue, 7); claimed.length > 0; claimed = await claim(queue, 7)) {
          seen.push(...claimed.map(({ message_id }) => message_id))
        }
      }),
    )
    // A worker that found all rows locked may have stopped early.
    for (const row of await claim(new ClaimQueue(mail), 500)) seen.push(row.message_id)
    assert.equal(seen.length, 500)
    assert.equal(new Set(seen).size, 500)
  })

  test('skips lanes of an unavailable provider', async () => {
    await empty()
    await send(await makeSender(), 3)
    const queue = new ClaimQueue(mail)
    await queue.refreshLanes()
    assert.equal((await queue.claim(capacity(10, () => 0))).length, 0)
    assert.equal((await queue.claim(capacity(10))).length, 3)
  })

  test("takes no more than the lane's capacity", async () => {
    await empty()
    const [slow, quick] = [await makeSender(), await makeSender()]
    await send(slow, 5)
    await send(quick, 5)
    const queue = new ClaimQueue(mail)
    await queue.refreshLanes()
    const claims = await queue.claim(capacity(10, ({ project_id }) => (project_id === slow.id ? 2 : 10)))
    const of = ({ id }: Sender) => claims.filter(({ claimed }) => claimed.project_id === id).length
    assert.deepEqual([of(slow), of(quick)], [2, 5])
  })

  test('serves a project among 200 locked ones without delay', async () => {
    await empty()
    const [open, closed] = [await makeSender(), await makeSender()]
    await send(open, 60)
    // Only lanes matter here, so the locked projects are created with SQL.
    await database.query(
      `with made as (
         insert into control.projects (user_id, name, plan_id, is_locked)
         select user_id, name, plan_id, true from control.projects, generate_series(1, 200) where id = $1 returning id)
       insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient)
       select postern.uuid7(now()), 0, id, 1, 'service', 'x@example.net' from made`,
      [closed.id],
    )
    assert.equal((await claim(new ClaimQueue(mail), 50)).length, 50)
  })

  test('takes mail for one provider while another is unavailable', async () => {
    await empty()
    const at = await makeSender()
    await send(at, 3)
    await database.query(
      `update mail.dispatch set provider = 'ses' where message_id = any(array(
      select message_id from mail.dispatch where project_id = $1 limit 1))`,
      [at.id],
    )
    const queue = new ClaimQueue(mail)
    await queue.refreshLanes()
    const claimed = await queue.claim(capacity(10, ({ provider }) => (provider === 'ses' ? 0 : 10)))
    assert.deepEqual(
      claimed.map((one) => one.claimed.provider),
      ['service', 'service'],
    )
  })

  test('finds mail that was accepted after the lane was found empty', async () => {
    await empty()
    const at = await makeSender()
    await send(at, 2)
    const queue = new ClaimQueue(mail)
    assert.equal((await claim(queue, 10)).length, 2)
    assert.equal((await queue.claim(capacity(10))).length, 0)
    await send(at, 3)
    assert.equal((await queue.claim(capacity(10))).length, 3, 'without refreshing the lanes')
  })
})

describe('a project that cannot send', () => {
  const closings: [string, (id: number) => Promise<unknown>, (id: number) => Promise<unknown>][] = [
    [
      'locked',
      (id) => admin.patch(`/projects/${id}`, { is_locked: true, reason: 'Card testing' }),
      (id) => admin.patch(`/projects/${id}`, { is_locked: false, reason: 'Explained' }),
    ],
    [
      'without a subscription',
      (id) => admin.patch(`/projects/${id}`, { admin_subscription_status: 'paused', reason: 'Unpaid' }),
      (id) => admin.patch(`/projects/${id}`, { admin_subscription_status: null, reason: 'Paid' }),
    ],
    [
      'held',
      (id) =>
        database.query(`insert into control.queue_restrictions (project_id, kind) values ($1, 'hold')`, [id]),
      (id) => database.query('delete from control.queue_restrictions where project_id = $1', [id]),
    ],
  ]
  for (const [what, close, open] of closings) {
    test(`${what}: keeps its mail queued and sends it afterwards`, async () => {
      await empty()
      const [closed, other] = [await makeSender(), await makeSender()]
      await send(closed, 5)
      await send(other, 2)
      await close(closed.id)
      const queue = new ClaimQueue(mail)
      assert.deepEqual(
        new Set((await claim(queue, 100)).map(({ project_id }) => project_id)),
        new Set([other.id]),
      )
      await age('5 days')
      await queue.expire()
      await open(closed.id)
      assert.equal((await claim(queue, 100)).length, 5)
    })
  }

  test('for more than seven days has its mail failed, with an event', async () => {
    await empty()
    const at = await makeSender()
    const [id = ''] = await send(at, 1)
    await admin.patch(`/projects/${at.id}`, { is_locked: true, reason: 'Card testing' })
    await age('7 days 1 second')
    await new ClaimQueue(mail).expire()
    assert.equal(await statusOf(id), 'failed')
    await publisher.sweep()
    await publisher.settled()
    assert.deepEqual(await eventsOf(id), ['message.accepted', 'message.failed'])
    assert.equal((await database.query('select from mail.dispatch')).length, 0)
  })
})

describe('a lease', () => {
  test('that has expired lets another worker claim the message, and the first worker writes nothing', async () => {
    await empty()
    const [id = ''] = await send(await makeSender(), 1)
    const queue = new ClaimQueue(mail)
    const [first] = await claim(queue, 10)
    await queue.sweep()
    assert.equal((await claim(queue, 10)).length, 0, 'it is leased')
    await age('61 seconds')
    await queue.sweep()
    const [second] = await claim(queue, 10)
    assert.ok(first && second)
    assert.deepEqual([first.attempt, second.attempt], [1, 2])
    await finish(ended(first))
    assert.equal(await statusOf(id), 'queued')
    await finish(ended(second))
    assert.equal(await statusOf(id), 'sent')
    await finish(ended(second))
    assert.deepEqual(await eventsOf(id), ['message.accepted', 'message.sent'])
  })
})

describe('the result of an attempt', () => {
  test('sent: deletes the dispatch row and records the attempt and the count', async () => {
    await empty()
    const at = await makeSender()
    const [id = ''] = await send(at, 1)
    const [claimed] = await claim(new ClaimQueue(mail), 10)
    assert.ok(claimed)
    await finish(ended(claimed))
    assert.equal((await database.query('select from mail.dispatch')).length, 0)
    const [attempt] = await database.query(
      'select attempt, host, queue_id, outcome, reply from mail.attempts where message_id = $1',
      [id],
    )
    assert.deepEqual(attempt, {
      attempt: 1,
      host: 'mta.example',
      queue_id: '4bX',
      outcome: 'sent',
      reply: '250 queued',
    })
    const [day] = await database.query('select sent::int from mail.daily_counters where project_id = $1', [
      at.id,
    ])
    assert.deepEqual(day, { sent: 1 })
  })

  test('deferred: writes one event and retries when due', async () => {
    await empty()
    const [id = ''] = await send(await makeSender(), 1)
    const queue = new ClaimQueue(mail)
    for (let round = 1; round <= 3; round++) {
      const [claimed] = await claim(queue, 10)
      assert.equal(claimed?.attempt, round)
      assert.ok(claimed)
      await finish(
        ended(claimed, { outcome: 'deferred', status: 'deferred', retrySeconds: 30, reply: '451' }),
      )
      await queue.sweep()
      assert.equal((await claim(queue, 10)).length, 0, 'not due yet')
      await age('31 seconds')
      await queue.sweep()
    }
    assert.equal(await statusOf(id), 'deferred')
    assert.deepEqual(await eventsOf(id), ['message.accepted', 'message.deferred'])
    const [claimed] = await claim(queue, 10)
    assert.ok(claimed)
    await finish(ended(claimed))
    assert.equal(await statusOf(id), 'sent')
  })

  test('does not overwrite a status that a report has set', async () => {
    await empty()
    const [id = ''] = await send(await makeSender(), 1)
    const [claimed] = await claim(new ClaimQueue(mail), 10)
    assert.ok(claimed)
    await database.query(`update mail.recipients set status = 'delivered' where message_id = $1`, [id])
    await finish(ended(claimed))
    assert.equal(await statusOf(id), 'delivered')
    assert.equal((await database.query('select from mail.dispatch')).length, 0)
  })
})

describe('scheduled mail', () => {
  test('is not claimed before its scheduled time', async () => {
    await empty()
    const [id = ''] = await send(await makeSender(), 1, new Date(Date.now() + 3600_000).toISOString())
    const queue = new ClaimQueue(mail)
    await queue.sweep()
    assert.equal((await claim(queue, 10)).length, 0)
    assert.equal(await statusOf(id), 'scheduled')
    await age('1 hour')
    await queue.sweep()
    assert.equal(await statusOf(id), 'queued')
    assert.equal((await claim(queue, 10)).length, 1)
  })
})

describe('partitions', () => {
  test('are created in advance and dropped when they are old and contain no unsent mail', async () => {
    const old = `date_trunc('day', now()) - interval '80 days'`
    const name = async () =>
      (await database.query<{ name: string }>(`select to_char(${old}, '"messages_"YYYYMMDD') as name`))[0]
        ?.name
    const exists = async () =>
      (await database.query(`select from pg_class where relname = $1`, [await name()])).length === 1
    await database.query(`do $$ begin
      execute format('create table mail.%I partition of mail.messages for values from (%L) to (%L)',
        to_char(${old}, '"messages_"YYYYMMDD'), postern.uuid7_floor(${old}), postern.uuid7_floor(${old} + interval '1 day'));
      end $$`)
    const keep = () => mail.transaction((tx) => keepPartitions(tx, 30))
    await database.query(
      `insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient)
       values (postern.uuid7(${old} + interval '1 hour'), 0, 1, 1, 'service', 'late@example.net')`,
    )
    await keep()
    assert.ok(await exists(), 'it still contains unsent mail')
    await database.query(`delete from mail.dispatch where recipient = 'late@example.net'`)
    assert.deepEqual(await keep(), { made: 0, dropped: 1 })
    assert.ok(!(await exists()))
  })

  test('are not dropped without a valid retention period', async () => {
    for (const days of ['null', '0', '3661']) {
      await assert.rejects(database.query(`select mail.maintain_partitions(14, ${days})`), /between 1 and 60/)
    }
  })
})
