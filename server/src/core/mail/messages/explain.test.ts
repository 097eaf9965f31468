import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { senders } from '../../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { Client, signedIn } from '../../../testing/harness/client.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'

/** Explanations must agree with what acceptance then answers. `POSTERN_TEST_CASES` sets the number of random cases. */
const cases = Number(process.env['POSTERN_TEST_CASES'] ?? 100)
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeSender, makePlan, makeApiKey } = senders(api, database, admin)
const canary = 'canary-4711-of-the-reason'

type Sender = Awaited<ReturnType<typeof makeSender>>

const query = (from: string, to: string) => `from=${encodeURIComponent(from)}&to=${encodeURIComponent(to)}`

async function makeExplained(): Promise<Sender> {
  const sender = await makeSender()
  await admin.patch(`${sender.path}/api-keys/${sender.keyId}`, {
    ...{ name: 'Key', scopes: ['messages:send', 'usage:read'], domain_id: null, allowed_ips: [] },
    ...{ expires_at: null, is_active: true, reason: 'Needed' },
  })
  return sender
}

const explain = async (sender: Sender, from: string, to: string) => {
  const answer = await admin.get(`${sender.path}/explain?${query(from, to)}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

const resultsOf = (body: { checks: { name: string; result: string }[] }) =>
  Object.fromEntries(body.checks.map(({ name, result }) => [name, result]))

const recipientsOf = async (sender: Sender, id: string) => {
  const answer = await admin.get(`${sender.path}/messages/${id}/explain`)
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

const databaseNow = async (): Promise<number> =>
  (await database.query('select postern.now() as now'))[0]?.['now'].getTime()

describe('messages.explain', () => {
  test('says what a queued message waits for, in the order of what applies', async () => {
    const sender = await makeExplained()
    const id = await sender.send()
    const free = await recipientsOf(sender, id)
    assert.deepEqual([free.recipients[0].waits_for, free.interventions], ['worker', []])

    const started = await admin.post(`${sender.path}/interventions`, {
      ...{ kind: 'pace', pace_per_hour: 30, reason: canary },
    })
    assert.equal(started.status, 201, started.text)
    const later = await sender.send()
    const before = await databaseNow()
    const paced = await recipientsOf(sender, later)
    const after = await databaseNow()
    const [waiting] = paced.recipients
    assert.deepEqual([waiting.waits_for, waiting.since], ['project_pace', started.body.created_at])
    assert.match(waiting.message, /at most 30 recipients per hour\. Recipients ahead of this message: 1\./)
    // Two minutes for the message ahead.
    const estimate = Date.parse(waiting.next_attempt_at) - 120_000
    assert.ok(estimate >= before - 1 && estimate <= after + 1, `estimated ${waiting.next_attempt_at}`)
    assert.deepEqual(
      paced.interventions.map(({ id, reason, started_by }: typeof started.body) => [
        id,
        reason,
        started_by.email,
      ]),
      [[started.body.id, canary, admin.email]],
    )

    await admin.post(`${sender.path}/queue/hold`, { reason: canary })
    assert.deepEqual(await waitOf(sender, id), ['held', 'project_hold', null])
    await admin.patch(sender.path, { is_locked: true, reason: canary })
    assert.deepEqual(await waitOf(sender, id), ['held', 'project_lock', null])
  })

  test('says when a scheduled and a deferred recipient are tried, and how a finished one ended', async () => {
    const sender = await makeExplained()
    const send_at = new Date(Date.now() + 3_600_000).toISOString()
    assert.deepEqual(await waitOf(sender, await sender.send({ send_at })), ['scheduled', 'schedule', send_at])

    const id = await sender.send()
    const retried = new Date(Date.now() + 600_000).toISOString()
    await database.query(
      `update mail.recipients set status = 'deferred', reply = '450 busy' where message_id = $1`,
      [id],
    )
    await database.query(`update mail.dispatch set state = 'deferred', due_at = $2 where message_id = $1`, [
      id,
      retried,
    ])
    assert.deepEqual(await waitOf(sender, id), ['deferred', 'retry', retried])
    await database.query(
      `update mail.recipients set status = 'bounced', reply = '550 unknown' where message_id = $1`,
      [id],
    )
    await database.query('delete from mail.dispatch where message_id = $1', [id])
    const [ended] = (await recipientsOf(sender, id)).recipients
    assert.deepEqual(
      [ended.waits_for, ended.since, ended.message],
      [null, null, 'The message bounced: 550 unknown.'],
    )
  })

  test('tells customers the public note, never the reason, an administrator or another project', async () => {
    const [sender, other] = [await makeExplained(), await makeExplained()]
    const [id, foreign] = [await sender.send(), await other.send()]
    await admin.post(`${other.path}/interventions`, {
      kind: 'hold',
      public_note: 'Of another',
      reason: canary,
    })
    await admin.post(`${sender.path}/interventions`, {
      kind: 'hold',
      public_note: 'Please call us.',
      reason: canary,
    })
    const key = await readingKey(sender)
    const answer = await key.get(`/messages/${id}/explain`)
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(
      answer.body.interventions.map(({ public_note }: { public_note: string }) => public_note),
      ['Please call us.'],
    )
    for (const secret of [canary, admin.email, 'Of another', other.domain.name])
      assert.ok(!answer.text.includes(secret), `the answer contains "${secret}"`)
    assert.equal((await key.get(`/messages/${foreign}/explain`)).status, 404)
  })
})

async function waitOf(sender: Sender, id: string): Promise<(string | null)[]> {
  const [{ status, waits_for, next_attempt_at }] = (await recipientsOf(sender, id)).recipients
  return [status, waits_for, next_attempt_at]
}

const readingKey = async ({ id }: Sender): Promise<Client> =>
  new Client(api.url, (await makeApiKey(id, { scopes: ['messages:read'], allowed_ips: [] })).secret, '/v1')

describe('sending.explain', () => {
  test('shows every check in order, also those after a failed one', async () => {
    const sender = await makeExplained()
    const [from, to] = [`a@${sender.domain.name}`, 'b@example.net']
    const fine = await explain(sender, from, to)
    assert.deepEqual([fine.outcome, fine.error, fine.interventions], ['accepted', null, []])
    assert.deepEqual(Object.keys(resultsOf(fine)), [
      'project_lock',
      'subscription',
      'sender_domain',
      'provider',
      'message',
      'suppression',
      'quota',
    ])
    assert.ok(Object.values(resultsOf(fine)).every((result) => result === 'passed'))

    await admin.patch(sender.path, {
      ...{ is_locked: true, admin_subscription_status: 'paused', allow_service_mta: false, reason: canary },
    })
    const blocked = await explain(sender, from, to)
    assert.deepEqual([blocked.outcome, blocked.error], ['refused', 'project_locked'])
    const { project_lock, subscription, sender_domain, provider } = resultsOf(blocked)
    assert.deepEqual(
      [project_lock, subscription, sender_domain, provider],
      ['failed', 'failed', 'passed', 'failed'],
    )
    assert.equal(blocked.interventions[0].reason, canary)
    const unknown = await explain(sender, 'a@elsewhere.example', to)
    assert.deepEqual(
      [resultsOf(unknown)['sender_domain'], resultsOf(unknown)['provider']],
      ['failed', 'unknown'],
    )
  })

  test('tells customers the public note, never the reason, an administrator or another project', async () => {
    const sender = await makeExplained()
    const other = await makeExplained()
    await admin.post(`${other.path}/interventions`, {
      kind: 'hold',
      public_note: 'Of another',
      reason: canary,
    })
    await admin.post(`${sender.path}/interventions`, {
      ...{ kind: 'lock', public_note: 'Please call us.', reason: canary },
    })
    const answer = await sender.program.get(`/explain?${query(`a@${sender.domain.name}`, 'b@example.net')}`)
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual([answer.body.outcome, answer.body.error], ['refused', 'project_locked'])
    const [notice, ...more] = answer.body.interventions
    assert.deepEqual(more, [])
    assert.deepEqual(Object.keys(notice), [
      ...['id', 'kind', 'public_note', 'pace_per_hour', 'expires_at', 'created_at'],
    ])
    assert.equal(notice.public_note, 'Please call us.')
    for (const secret of [canary, admin.email, 'Of another', other.domain.name])
      assert.ok(!answer.text.includes(secret), `the answer contains "${secret}"`)
  })

  test(`agrees with acceptance in ${cases} random cases (seed ${seed})`, async () => {
    const chance = new Chance(seed)
    const tight = await makePlan({ max_mails_per_day: 2, max_mails_per_month: 3 })
    const wide = await makePlan()
    const foreign = await makeExplained()
    const suppressed = 'never@example.net'
    await database.query(
      `insert into control.platform_suppressions (address, reason) values ('nowhere@example.net', 'Needed')`,
    )
    let sender = await makeExplained()
    const outcomes = new Map<string, number>()
    for (let n = 0; n < cases; n++) {
      if (n % 25 === 0) {
        sender = await makeExplained()
        await database.query(
          `insert into mail.suppressions (project_id, address, reason) values ($1, $2, 'manual')`,
          [sender.id, suppressed],
        )
      }
      await admin.patch(sender.path, {
        is_locked: chance.happens(0.2),
        admin_subscription_status: chance.pick([null, null, 'active', 'past_due', 'paused', 'canceled']),
        allow_service_mta: chance.happens(0.85),
        admin_plan_id: chance.pick([null, wide.id, tight.id]),
        reason: 'A random case',
      })
      await database.query('update control.domains set status = $2 where id = $1', [
        ...[sender.domain.id, chance.happens(0.85) ? 'verified' : 'failed'],
      ])
      const from = chance.pick([
        ...Array<string>(5).fill(`a@${sender.domain.name}`),
        ...[`a@${foreign.domain.name}`, 'a@nowhere.example', 'no address', `"Ada" <a@${sender.domain.name}>`],
      ])
      const to = chance.pick([
        ...Array<string>(4).fill('b@example.net'),
        suppressed,
        'NEVER@example.net',
        'Nowhere@example.net',
        'b@',
        'x',
      ])
      const { outcome, error } = await explain(sender, from, to)
      const sent = await sender.program.post('/messages', { from, to: [to], subject: '', text: '' })
      const actual =
        sent.status === 202 ? (sent.body.status === 'suppressed' ? 'suppressed' : 'accepted') : 'refused'
      assert.deepEqual(
        [outcome, error],
        [actual, sent.status === 202 ? null : sent.body.error],
        `case ${n}: from ${from} to ${to}: ${sent.text}`,
      )
      const key = error ?? outcome
      outcomes.set(key, (outcomes.get(key) ?? 0) + 1)
    }
    if (cases >= 100) assert.ok(outcomes.size >= 5, `too few outcomes: ${[...outcomes.keys()].join(', ')}`)
  })
})
