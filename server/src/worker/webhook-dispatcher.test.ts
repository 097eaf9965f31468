import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { describe, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { mailRows } from '../testing/fixtures/mail-rows.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { eventually } from '../testing/harness/waiting.ts'
import {
  assertDated,
  retryDelay,
  type TestEndpoint,
  webhookHarness,
} from '../testing/harness/webhook-harness.ts'
import type { Received } from '../testing/peers/webhook-receiver.ts'

/** Webhooks with a real receiver, from the event's commit to the recorded attempt. */
const database = await testDatabase()
const stage = await webhookHarness(database)
const { receiver, api, makeProject, makeEndpoint, publishEvents } = stage
const { makeMail } = mailRows(database)
stage.startWorker()

const firstAttemptOf = (endpoint: TestEndpoint) =>
  eventually(
    `an attempt at endpoint ${endpoint.id} is recorded`,
    async () => (await stage.attemptsOf(endpoint))[0],
  )

const isSigned = (secret: string, { headers, body }: Received): boolean => {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>)
    return true
  } catch {
    return false
  }
}

/** Verifies the signatures with a program that is independent of Postern and of the webhook library. */
function perlSays(secret: string, deliveries: readonly Received[]): string[] {
  const lines = deliveries.flatMap(({ headers, body }) => [
    headers['webhook-id'],
    headers['webhook-timestamp'],
    headers['webhook-signature'],
    Buffer.from(body).toString('base64'),
  ])
  const script = path.join(import.meta.dirname, '../testing/expectations/verify-webhook.pl')
  const said = execFileSync('perl', [script], { input: `${[secret, ...lines].join('\n')}\n` })
  return said.toString().trim().split('\n')
}

describe('an event', () => {
  test('arrives once, with complete data and a signature that others can verify', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    const { messageId } = await makeMail(projectId, { tags: ['welcome'] })
    const before = await stage.now()
    const [id = ''] = await publishEvents(projectId, 1, {
      messageId,
      recipientNo: 0,
      data: { recipient: 'Ünï@example.net' },
    })
    const [got = assert.fail()] = await receiver.until(1, endpoint.path)
    await stage.untilQuiet(endpoint)

    assert.equal(got.headers['webhook-id'], id)
    assert.equal(got.headers['content-type'], 'application/json')
    assert.equal(got.headers['user-agent'], 'Postern/test')
    // In whole seconds.
    const dated = Number(got.headers['webhook-timestamp'])
    const [first, last] = [before, await stage.now()].map((at) => Math.floor(at.getTime() / 1000))
    assert.ok(dated >= (first ?? 0) && dated <= (last ?? 0), `dated ${dated}, sent from ${first} to ${last}`)
    assert.ok(isSigned(endpoint.secret, got))
    assert.deepEqual(perlSays(endpoint.secret, [got, { ...got, body: `${got.body} ` }]), ['right', 'wrong'])

    const { type, timestamp, data, ...more } = JSON.parse(got.body)
    const [row] = await database.query<{ created_at: Date }>(
      'select created_at from mail.events where id = $1',
      [id],
    )
    assert.deepEqual(
      { type, timestamp, more },
      {
        ...{ type: 'message.delivered', timestamp: row?.created_at.toISOString(), more: {} },
      },
    )
    const { group: _, ...told } = data
    assert.deepEqual(told, {
      ...{ recipient: 'Ünï@example.net', no: 0, project_id: projectId },
      ...{ message_id: messageId, tags: ['welcome'], metadata: {} },
    })
    assert.equal((await receiver.until(1, endpoint.path)).length, 1)
    assert.deepEqual(
      (await stage.attemptsOf(endpoint)).map(({ event_id, attempt, outcome, status }) => ({
        ...{ event_id, attempt, outcome, status },
      })),
      [{ event_id: id, attempt: 1, outcome: 'delivered', status: 204 }],
    )
    assert.equal(await stage.waitingFor(endpoint), 0)
  })

  test('is delivered to each subscribed endpoint and to no other', async () => {
    const projectId = await makeProject()
    const [one, two] = [await makeEndpoint(projectId), await makeEndpoint(projectId)]
    const stranger = await makeEndpoint(await makeProject())
    await publishEvents(projectId, 30)
    await receiver.until(30, one.path)
    await receiver.until(30, two.path)
    await stage.untilQuiet(one)
    for (const { path: at, secret } of [one, two]) {
      const got = receiver.got.filter((received) => received.path === at)
      assert.equal(new Set(got.map(({ headers }) => headers['webhook-id'])).size, 30)
      assert.deepEqual(new Set(perlSays(secret, got)), new Set(['right']))
    }
    assert.equal(receiver.got.filter((received) => received.path === stranger.path).length, 0)
  })

  test('of two megabytes is delivered in full', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    const content = 'mail '.repeat(400_000)
    await publishEvents(projectId, 12, { data: { content } })
    const got = await receiver.until(12, endpoint.path)
    for (const one of got) assert.equal(JSON.parse(one.body).data.content, content)
    assert.ok(isSigned(endpoint.secret, got[0] ?? assert.fail()))
  })

  test('that was deleted is not attempted', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    receiver.answer({ status: 500 }, endpoint.path)
    const [id] = await publishEvents(projectId)
    await receiver.until(1, endpoint.path)
    await stage.untilQuiet(endpoint)
    await database.query('delete from mail.events where id = $1', [id])
    await stage.pass(endpoint, '1 hour')
    await stage.untilQuiet(endpoint)
    assert.equal(await stage.waitingFor(endpoint), 0)
    assert.equal((await stage.attemptsOf(endpoint)).length, 1)
  })
})

describe('a receiver that fails', () => {
  test('gets the same bytes with a new signature after it recovers', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    receiver.answer({ status: 500, body: 'not today\0' }, endpoint.path)
    const before = await stage.now()
    await publishEvents(projectId, 20)
    const [first] = await receiver.until(1, endpoint.path)
    await stage.untilQuiet(endpoint)
    assert.equal(
      (await receiver.until(1, endpoint.path)).length,
      1,
      'an endpoint without a success gets one request',
    )
    const resting = await stage.queueOf(endpoint)
    assert.equal(resting.failures, 1)
    assertDated(resting.backoff_until, retryDelay.ms, before, await stage.now())

    receiver.answer({ status: 200, body: 'thanks' }, endpoint.path)
    await stage.pass(endpoint, retryDelay.interval)
    const got = await receiver.until(21, endpoint.path)
    await stage.untilQuiet(endpoint)
    const again = got.filter(({ headers }) => headers['webhook-id'] === first?.headers['webhook-id'])
    assert.equal(again.length, 2)
    assert.equal(again[0]?.body, again[1]?.body)
    assert.deepEqual(new Set(perlSays(endpoint.secret, got)), new Set(['right']))
    const { failures, is_healthy, is_idle } = await stage.queueOf(endpoint)
    assert.deepEqual({ failures, is_healthy, is_idle }, { failures: 0, is_healthy: true, is_idle: true })
    const attempts = await stage.attemptsOf(endpoint)
    assert.equal(attempts[0]?.response, 'not today\ufffd')
    assert.equal(attempts.filter(({ outcome }) => outcome === 'delivered').length, 20)
  })

  const cases: [what: string, reply: Parameters<typeof receiver.answer>[0], error: RegExp | null][] = [
    ['redirects', { status: 302, headers: { location: 'https://example.com/' } }, null],
    ['resets the connection', 'reset', /closed before a response/],
    ['responds not found', { status: 404 }, null],
  ]
  for (const [what, reply, error] of cases) {
    test(`causes a failed attempt if it ${what}`, async () => {
      const projectId = await makeProject()
      const endpoint = await makeEndpoint(projectId)
      receiver.answer(reply, endpoint.path)
      await publishEvents(projectId)
      await receiver.until(1, endpoint.path)
      await stage.untilQuiet(endpoint)
      const [attempt = assert.fail()] = await stage.attemptsOf(endpoint)
      assert.equal(attempt.outcome, 'failed')
      assert.equal(attempt.status, typeof reply === 'object' && 'status' in reply ? reply.status : null)
      if (error) assert.match(attempt.error ?? '', error)
      else assert.equal(attempt.error, null)
    })
  }

  const unreachable: [what: string, url: string, error: RegExp][] = [
    [
      'nothing listens on its port',
      `https://127.0.0.1:${receiver.port}/`.replace('127.0.0.1', '127.0.0.9'),
      /refused/,
    ],
    ['its address is private', 'https://10.1.2.3/hook', /./],
  ]
  for (const [what, url, error] of unreachable) {
    test(`causes a recorded error if ${what}`, async () => {
      const projectId = await makeProject()
      const endpoint = await makeEndpoint(projectId, { url })
      await publishEvents(projectId)
      const attempt = await firstAttemptOf(endpoint)
      assert.deepEqual([attempt.outcome, attempt.status], ['failed', null])
      assert.match(attempt.error ?? '', error)
      assert.match(attempt.error ?? '', /^[A-Z].*\.$/)
    })
  }

  test('causes a recorded error if its certificate is not trusted', async () => {
    const projectId = await makeProject()
    // Its certificate is for 127.0.0.1.
    const endpoint = await makeEndpoint(projectId, {
      url: `https://127.0.0.1:${receiver.port}/`.replace('.1:', '.2:'),
    })
    await publishEvents(projectId)
    assert.match((await firstAttemptOf(endpoint)).error ?? '', /refused|certificate/)
  })

  test('succeeds with 200 regardless of the body, of which only the beginning is stored', async () => {
    const projectId = await makeProject()
    const [long, endless] = [await makeEndpoint(projectId), await makeEndpoint(projectId)]
    receiver.answer({ status: 200, body: 'x'.repeat(5_000_000) }, long.path)
    // The worker's requests do not time out in this test: the body size limit ends this one.
    receiver.answer('endless', endless.path)
    await publishEvents(projectId)
    for (const endpoint of [long, endless]) {
      await receiver.until(1, endpoint.path)
      await stage.untilQuiet(endpoint)
      const [attempt = assert.fail()] = await stage.attemptsOf(endpoint)
      assert.deepEqual([attempt.outcome, attempt.status], ['delivered', 200])
      assert.ok((attempt.response ?? '').length <= 1024)
    }
  })

  test('does not delay other receivers, however slow it is', async () => {
    const projectId = await makeProject()
    const slow = await makeEndpoint(projectId)
    const released = Promise.withResolvers<void>()
    receiver.answer({ status: 204, after: released.promise }, slow.path)
    await publishEvents(projectId, 50)
    await receiver.until(1, slow.path)
    const quick = await makeEndpoint(await makeProject())
    await publishEvents(quick.project_id, 20)
    await receiver.until(20, quick.path)
    assert.deepEqual(await stage.attemptsOf(slow), [], 'the slow receiver has not responded')
    released.resolve()
    await receiver.until(50, slow.path)
  })

  test('sends Retry-After, which is respected', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    await publishEvents(projectId)
    await receiver.until(1, endpoint.path)
    await stage.untilQuiet(endpoint)
    // Longer than any other backoff in this file.
    receiver.answer({ status: 429, headers: { 'retry-after': '7200' } }, endpoint.path)
    const before = await stage.now()
    await publishEvents(projectId)
    await receiver.until(2, endpoint.path)
    await stage.untilQuiet(endpoint)
    const { backoff_until, due_at } = await stage.queueOf(endpoint)
    assertDated(backoff_until, 7_200_000, before, await stage.now())
    assert.deepEqual(due_at, backoff_until)
    // Events written in the meantime wait as well.
    receiver.answer({ status: 204 }, endpoint.path)
    await publishEvents(projectId)
    await stage.untilQuiet(endpoint)
    assert.equal((await receiver.until(2, endpoint.path)).length, 2)
    await stage.pass(endpoint, '2 hours')
    assert.equal((await receiver.until(4, endpoint.path)).length, 4)
  })

  test('still receives other events if it rejects one', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    receiver.answer(
      ({ body }) => ({ status: JSON.parse(body).type === 'message.bounced' ? 500 : 204 }),
      endpoint.path,
    )
    const [bad] = await publishEvents(projectId, 1, { type: 'message.bounced' })
    await publishEvents(projectId, 30)
    for (let round = 0; round < 3; round++) {
      await stage.untilQuiet(endpoint)
      await stage.pass(endpoint, retryDelay.interval)
    }
    await stage.untilQuiet(endpoint)
    const delivered = (await stage.attemptsOf(endpoint)).filter(({ outcome }) => outcome === 'delivered')
    assert.equal(new Set(delivered.map(({ event_id }) => event_id)).size, 30)
    assert.ok(!delivered.some(({ event_id }) => event_id === bad))
    assert.equal(await stage.waitingFor(endpoint), 1)
  })
})

describe('a rotation', () => {
  test('between retries stops the old secret from being used', async () => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    receiver.answer({ status: 500 }, endpoint.path)
    await publishEvents(projectId)
    const [before = assert.fail()] = await receiver.until(1, endpoint.path)
    await stage.untilQuiet(endpoint)
    assert.ok(isSigned(endpoint.secret, before))
    const token = await api.tokenOf((await api.makeAdmin()).email)
    const at = `/v1/admin/projects/${projectId}/endpoints/${endpoint.id}/rotate`
    const answer = await fetch(new URL(at, api.url), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ reason: 'It leaked.' }),
    })
    const { secret } = (await answer.json()) as { secret: string }
    receiver.answer({ status: 204 }, endpoint.path)
    await stage.pass(endpoint, retryDelay.interval)
    const [, after = assert.fail()] = await receiver.until(2, endpoint.path)
    assert.equal(after.body, before.body)
    assert.ok(isSigned(secret, after))
    assert.ok(!isSigned(endpoint.secret, after))
  })
})

test('no worker logged an error', () => {
  assert.deepEqual(stage.errors, [])
})
