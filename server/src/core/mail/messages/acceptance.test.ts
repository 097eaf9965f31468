import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { sql } from 'kysely'
import type { PosternError } from '../../../platform/errors.ts'
import { ampleByteLimits } from '../../../testing/fixtures/byte-limits.ts'
import { fixtures } from '../../../testing/fixtures/fixtures.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { recordStatements } from '../../../testing/harness/statements.ts'
import { eventually } from '../../../testing/harness/waiting.ts'
import type { AcceptRequest, AcceptResponse } from './accept-request.ts'
import { lockNames } from './acceptance.sql.ts'
import { Acceptance } from './acceptance.ts'
import { readDraft } from './draft.ts'
import type { MessageRequest } from './wire.ts'

/**
 * Tests acceptance without the API: groups, counts, repeated requests, and failures of individual requests.
 */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makePlan, makeProject, makeDomain } = fixtures(database, admin)
const acceptance = new Acceptance(
  openDatabase(database, { poolSize: 8 }).as('mail'),
  ['service'],
  ampleByteLimits,
)

interface Sender {
  id: number
  name: string
}

async function makeSender(
  limits: { max_mails_per_day?: number; max_mails_per_month?: number } = {},
): Promise<Sender> {
  const { id } = await makeProject({ plan_id: (await makePlan(limits)).id })
  const { name } = await makeDomain(id, { mta_provider: 'service', status: 'verified' })
  return { id, name }
}

const mailOf = ({ name }: Sender, changes: Partial<MessageRequest> = {}): MessageRequest => ({
  from: `shop@${name}`,
  to: ['someone@example.net'],
  subject: 'Your order',
  text: 'It is on its way.',
  ...changes,
})

const submissionOf = ({ id }: Sender, ...mails: MessageRequest[]): AcceptRequest => ({
  sender: { projectId: id, apiKey: null, userId: 1 },
  mails: mails.map((mail) => readDraft(mail, Date.now())),
})

const submit = (at: Sender, ...mails: MessageRequest[]): Promise<AcceptResponse> =>
  acceptance.accept(submissionOf(at, ...mails))

const codesOf = (answer: AcceptResponse): string[] =>
  'outcomes' in answer
    ? answer.outcomes.map((one) => ('accepted' in one ? one.accepted.status : one.refused.code))
    : ['repeated']

const count = async (sql: string, id: number): Promise<number> =>
  Number((await database.query<{ count: string }>(`select count(*) from ${sql}`, [id]))[0]?.count)

const accepted = async ({ id }: Sender): Promise<number[]> =>
  (
    await database.query<{ accepted: string }>(
      'select accepted from mail.usage where project_id = $1 order by period',
      [id],
    )
  ).map((row) => Number(row.accepted))

describe('an accepted message', () => {
  test("has rows in every table, with an id generated from the database's time", async () => {
    const at = await makeSender()
    const answer = await submit(
      at,
      mailOf(at, { to: ['a@example.net', 'B <b@example.net>'], bcc: ['c@example.net'] }),
    )
    assert.ok('outcomes' in answer)
    const [outcome] = answer.outcomes
    assert.ok(outcome && 'accepted' in outcome)
    const { id, created_at } = outcome.accepted
    assert.equal(Number.parseInt(id.replace('-', '').slice(0, 12), 16), new Date(created_at).getTime())
    const recipients = await database.query(
      'select kind, address, status from mail.recipients where message_id = $1 order by recipient_no',
      [id],
    )
    assert.deepEqual(recipients, [
      { kind: 'to', address: 'a@example.net', status: 'queued' },
      { kind: 'to', address: 'b@example.net', status: 'queued' },
      { kind: 'bcc', address: 'c@example.net', status: 'queued' },
    ])
    assert.equal(await count("mail.dispatch where project_id = $1 and state = 'ready'", at.id), 3)
    assert.equal(await count('mail.bodies where project_id = $1', at.id), 1)
    const [{ content } = { content: Buffer.alloc(0) }] = await database.query<{ content: Buffer }>(
      'select content from mail.bodies where message_id = $1',
      [id],
    )
    assert.equal(JSON.parse(content.toString()).text, 'It is on its way.')
    assert.ok(!content.includes('c@example.net'), 'Bcc recipients are only in the envelope')
    assert.deepEqual(await accepted(at), [3, 3])
    const events = await database.query('select type, data from mail.events where message_id = $1', [id])
    assert.deepEqual(events, [{ type: 'message.accepted', data: { recipients: 3 } }])
  })

  test('has each recipient once, even if an address is listed several times', async () => {
    const at = await makeSender()
    await submit(at, mailOf(at, { to: ['a@example.net', 'A@example.net'], cc: ['a@example.net'] }))
    assert.equal(await count('mail.recipients where project_id = $1', at.id), 1)
  })

  test('waits until send_at', async () => {
    const at = await makeSender()
    const send_at = new Date(Date.now() + 3600_000).toISOString()
    assert.deepEqual(codesOf(await submit(at, mailOf(at, { send_at }))), ['scheduled'])
    const [row] = await database.query('select state, due_at from mail.dispatch where project_id = $1', [
      at.id,
    ])
    assert.deepEqual(row, { state: 'scheduled', due_at: new Date(send_at) })
    const far = new Date(Date.now() + 31 * 24 * 3600_000).toISOString()
    assert.deepEqual(codesOf(await submit(at, mailOf(at, { send_at: far }))), ['validation_failed'])
  })

  test("is scheduled by the database's clock, even if the API server's clock is wrong", async () => {
    const at = await makeSender()
    const minutes = (count: number): number => Date.now() + count * 60_000
    for (const [apiClock, send_at, status] of [
      [minutes(10), minutes(5), 'scheduled'],
      [minutes(-10), minutes(-5), 'queued'],
    ] as const) {
      const mail = mailOf(at, { send_at: new Date(send_at).toISOString() })
      const answer = await acceptance.accept({
        sender: { projectId: at.id, apiKey: null, userId: 1 },
        mails: [readDraft(mail, apiClock)],
      })
      assert.deepEqual(codesOf(answer), [status])
    }
  })

  test('skips suppressed recipients, writes an event for them, and does not count them', async () => {
    const at = await makeSender()
    await database.query(
      `insert into mail.suppressions (project_id, address, reason) values ($1, 'gone@example.net', 'bounce')`,
      [at.id],
    )
    const answer = await submit(
      at,
      mailOf(at, { to: ['Gone@example.net', 'here@example.net'] }),
      mailOf(at, { to: ['gone@example.net'] }),
    )
    assert.deepEqual(codesOf(answer), ['queued', 'suppressed'])
    assert.deepEqual(await accepted(at), [1, 1])
    assert.equal(await count('mail.dispatch where project_id = $1', at.id), 1)
    assert.equal(await count(`mail.events where project_id = $1 and type = 'message.suppressed'`, at.id), 2)
    assert.equal(await count('mail.daily_counters where project_id = $1 and suppressed = 2', at.id), 1)
  })
})

describe('the suppression list for all projects', () => {
  test('is read together with that of the project, in one statement', async (t) => {
    const at = await makeSender()
    await database.query(
      `insert into control.platform_suppressions (address, reason) values ('nobody@example.net', 'Needed')`,
    )
    const statements = recordStatements(t)
    const answer = await submit(
      at,
      mailOf(at, { to: ['Nobody@example.net', 'here@example.net'] }),
      mailOf(at, { to: ['nobody@example.net'] }),
    )
    assert.deepEqual(codesOf(answer), ['queued', 'suppressed'])
    assert.deepEqual(await accepted(at), [1, 1])
    assert.equal(statements.about('control.platform_suppressions'), 1)
    assert.equal(statements.about('mail.suppressions'), 1)
    assert.equal(await count(`mail.events where project_id = $1 and data ->> 'list' = 'platform'`, at.id), 2)
    assert.equal(await count('mail.suppressions where project_id = $1', at.id), 0)
  })
})

describe('a quota', () => {
  test('accepts exactly one of 200 concurrent requests for the last remaining message', async () => {
    const at = await makeSender({ max_mails_per_day: 7 })
    await submit(at, mailOf(at, { to: [1, 2, 3, 4, 5, 6].map((n) => `r${n}@example.net`) }))
    // Two instances act as two processes, which share no counter in memory.
    const other = new Acceptance(
      openDatabase(database, { poolSize: 8 }).as('mail'),
      ['service'],
      ampleByteLimits,
    )
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        (n % 2 ? acceptance : other).accept(submissionOf(at, mailOf(at))),
      ),
    )
    const codes = answers.flatMap(codesOf)
    assert.equal(codes.filter((code) => code === 'queued').length, 1)
    assert.equal(codes.filter((code) => code === 'quota_exceeded').length, 199)
    assert.deepEqual(await accepted(at), [7, 7])
    assert.equal(await count('mail.dispatch where project_id = $1', at.id), 7)
  })

  test('per month applies in addition to the daily quota, and the error states when the next period begins', async () => {
    const at = await makeSender({ max_mails_per_day: 100, max_mails_per_month: 2 })
    const answer = await submit(
      at,
      mailOf(at),
      mailOf(at, { to: ['a@example.net', 'b@example.net'] }),
      mailOf(at),
    )
    assert.deepEqual(codesOf(answer), ['queued', 'quota_exceeded', 'queued'], 'a smaller message still fits')
    const secondsLeft = async () => {
      const [row] = await database.query<{ seconds: number }>(
        `select ceil(extract(epoch from date_trunc('month', now) + interval '1 month' - now))::int as seconds
           from date_trunc('milliseconds', postern.now() at time zone 'UTC') as now`,
      )
      return row?.seconds ?? assert.fail()
    }
    const before = await secondsLeft()
    const [last] = ((await submit(at, mailOf(at))) as { outcomes: { refused: PosternError }[] }).outcomes
    const after = await secondsLeft()
    assert.match(
      last?.refused.message ?? '',
      /2 messages per month, counted per recipient; 0 are left and this message needs 1/,
    )
    const seconds = last?.refused.retryAfterSeconds ?? 0
    assert.ok(after <= seconds && seconds <= before, `${seconds}, not from ${after} to ${before}`)
  })
})

describe('a group', () => {
  test('accepts or rejects each message separately', async () => {
    const [one, two, locked] = [
      await makeSender(),
      await makeSender({ max_mails_per_day: 0 }),
      await makeSender(),
    ]
    await admin.patch(`/projects/${locked.id}`, { is_locked: true, reason: 'Card testing' })
    const answers = await Promise.all([
      submit(one, mailOf(one)),
      submit(two, mailOf(two)),
      submit(locked, mailOf(locked)),
      submit(one, mailOf(two)),
      submit(one, mailOf(one, { from: 'nobody' })),
      submit(one, mailOf(one)),
    ])
    assert.deepEqual(answers.flatMap(codesOf), [
      'queued',
      'quota_exceeded',
      'project_locked',
      'domain_not_verified',
      'validation_failed',
      'queued',
    ])
  })

  test('that the database rejects is split until the failing request is isolated', async () => {
    const at = await makeSender()
    await database.query(`
      create function refuse() returns trigger language plpgsql as
        $$ begin if new.subject = 'poison' then raise exception 'poison'; end if; return new; end $$;
      create trigger poison before insert on mail.messages for each row execute function refuse()`)
    const subjects = Array.from({ length: 50 }, (_, n) => (n === 17 ? 'poison' : `No. ${n}`))
    const settled = await Promise.allSettled(subjects.map((subject) => submit(at, mailOf(at, { subject }))))
    await database.query('drop trigger poison on mail.messages')
    assert.deepEqual(
      settled.flatMap(({ status }, n) => (status === 'rejected' ? [n] : [])),
      [17],
    )
    assert.equal(await count('mail.messages where project_id = $1', at.id), 49)
    assert.deepEqual(await accepted(at), [49, 49])
  })
})

describe('a repeated request', () => {
  const repeatable = (key: string, text: string) => ({
    actor: 'key:1',
    operation: 'messages.send',
    key,
    requestHash: createHash('sha256').update(text).digest(),
    answerOf: (answer: AcceptResponse) =>
      'outcomes' in answer && answer.outcomes.every((one) => 'accepted' in one)
        ? { status: 202, body: JSON.stringify(answer.outcomes) }
        : undefined,
  })

  test('sent a thousand times concurrently creates one message; the others get its response or request_in_progress', async () => {
    const at = await makeSender()
    const answers = await Promise.all(
      Array.from({ length: 1000 }, () =>
        acceptance.accept({ ...submissionOf(at, mailOf(at)), repeatable: repeatable('k', 'same') }),
      ),
    )
    const codes = answers.flatMap(codesOf)
    assert.equal(codes.filter((code) => code === 'queued').length, 1)
    assert.equal(codes.filter((code) => code === 'repeated' || code === 'request_in_progress').length, 999)
    assert.equal(await count('mail.messages where project_id = $1', at.id), 1)
    const again = await acceptance.accept({
      ...submissionOf(at, mailOf(at)),
      repeatable: repeatable('k', 'same'),
    })
    const first = answers.find((answer) => codesOf(answer)[0] === 'queued')
    assert.ok('repeated' in again && first && 'outcomes' in first)
    assert.equal(again.repeated.body, JSON.stringify(first.outcomes))
  })

  test("with another request's key is rejected, and a rejected request can be corrected under the same key", async () => {
    const at = await makeSender()
    const send = (text: string, mail: MessageRequest) =>
      acceptance.accept({ ...submissionOf(at, mail), repeatable: repeatable('m', text) })
    assert.deepEqual(codesOf(await send('bad', mailOf(at, { to: [] }))), ['validation_failed'])
    assert.deepEqual(codesOf(await send('good', mailOf(at))), ['queued'])
    assert.deepEqual(codesOf(await send('other', mailOf(at))), ['idempotency_key_reused'])
  })
})

describe('a domain that is edited while mail is accepted', () => {
  test('keeps its old identity until that mail is committed', async () => {
    const at = await makeSender()
    // Acceptance holds this lock until it commits.
    const mail = openDatabase(database).as('mail')
    const steps: string[] = []
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const locked = Promise.withResolvers<void>()
    const accepting = mail.transaction(async (tx) => {
      await lockNames(tx, [{ projectId: at.id, name: at.name }])
      locked.resolve()
      await held
      steps.push('accepted')
    })
    await locked.promise
    const retiring = mail.read(async (tx) => {
      await sql`select pg_advisory_xact_lock(postern.acceptance_lock(${at.id}, ${at.name}))`.execute(tx)
      steps.push('retired')
    })
    await eventually('the edit waits for the commit', async () => {
      const { rows } = await mail.read((tx) =>
        sql`select from pg_locks
             where locktype = 'advisory' and not granted
               and database = (select oid from pg_database where datname = current_database())`.execute(tx),
      )
      return rows.length > 0
    })
    assert.deepEqual(steps, [])
    release()
    await Promise.all([accepting, retiring])
    assert.deepEqual(steps, ['accepted', 'retired'])
  })
})
