import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeSender, makeApiKey } = senders(api, database, admin)

const hourMs = 3_600_000
const hoursAgo = (hours: number) => new Date(Math.floor(Date.now() / hourMs) * hourMs - hours * hourMs)

/** One figure of the project in the hour that began so many hours ago. */
async function addCount(projectId: number, ago: number, provider: string, sent: number, more: object = {}) {
  const counts = { sent, ...more }
  await database.query(
    `insert into mail.mailbox_provider_counters (project_id, hour_at, mailbox_provider, ${Object.keys(counts).join(', ')})
     values ($1, $2, $3, ${Object.values(counts).join(', ')})`,
    [projectId, hoursAgo(ago), provider],
  )
}

describe('mailbox-providers.show', () => {
  test('returns the figures of the last 24 hours, the largest provider first and other last', async () => {
    const [{ id, path }, other] = [await makeSender(), await makeSender()]
    await addCount(id, 0, 'gmail', 60, {
      delivered: 50,
      deferred: 20,
      bounced: 4,
      complained: 1,
      rejected: 20,
    })
    await addCount(id, 3, 'gmail', 20, { delivered: 20, failed: 2 })
    await addCount(id, 1, 'other', 1000)
    await addCount(id, 1, 'microsoft', 500)
    await addCount(id, 24, 'apple', 500)
    await addCount(other.id, 1, 'yahoo', 500)
    const { status, body } = await admin.get(`${path}/mailbox-providers`)
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(body), ['from', 'to', 'counted_until', 'mailbox_providers'])
    assert.equal(Date.parse(body.to) - Date.parse(body.from), 24 * hourMs)
    assert.ok(Date.parse(body.to) > Date.now() && Date.parse(body.to) <= Date.now() + hourMs)
    const volumes = body.mailbox_providers.map((one: Record<string, unknown>) => [
      one['mailbox_provider'],
      one['volume'],
    ])
    assert.deepEqual(volumes, [
      ['microsoft', 500],
      ['gmail', 100],
      ['other', 1000],
    ])
    assert.deepEqual(body.mailbox_providers[1], {
      ...{ mailbox_provider: 'gmail', volume: 100, sent: 80 },
      ...{ delivered: 70, deferred: 20, bounced: 4, failed: 2, complained: 1 },
      ...{ delivery_rate: 70, deferral_rate: 20, bounce_rate: 4, failure_rate: 2, complaint_rate: 1 },
    })
  })

  test('returns a range, extended to whole hours', async () => {
    const { id, path } = await makeSender()
    for (const ago of [1, 2, 3, 4]) await addCount(id, ago, 'gmail', 10 ** ago)
    const at = (ago: number, minutes: number) =>
      new Date(hoursAgo(ago).getTime() + minutes * 60_000).toISOString()
    const show = async (from: string, to: string) =>
      (await admin.get(`${path}/mailbox-providers?from=${from}&to=${to}`)).body
    const body = await show(at(3, 59), at(2, 1))
    assert.deepEqual([body.from, body.to], [at(3, 0), at(1, 0)])
    assert.equal(body.mailbox_providers[0].sent, 1100)
    assert.equal((await show(at(3, 0), at(2, 0))).mailbox_providers[0].sent, 1000)
    assert.deepEqual((await show(at(50, 0), at(40, 0))).mailbox_providers, [])
  })

  test('has no rates for a provider that has only late reports', async () => {
    const { id, path } = await makeSender()
    await addCount(id, 1, 'gmail', 0, { complained: 2 })
    const [gmail] = (await admin.get(`${path}/mailbox-providers`)).body.mailbox_providers
    assert.deepEqual([gmail.volume, gmail.complained, gmail.complaint_rate], [0, 2, null])
  })

  test('rejects a range that is empty or longer than 90 days', async () => {
    const { path } = await makeSender()
    for (const query of [
      'from=2026-01-02T00:00:00Z&to=2026-01-02T00:00:00Z',
      'from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z',
      'from=2999-01-01T00:00:00Z',
      'from=2026-01-01T00:00:00Z&to=2026-04-02T00:00:00Z',
      'from=2026-01-01T00:00:60Z',
      'from=yesterday',
      'days=7',
    ]) {
      assertProblem(await admin.get(`${path}/mailbox-providers?${query}`), 400, 'invalid_parameter')
    }
    const longest = 'from=2026-01-01T00:00:00Z&to=2026-04-01T00:00:00Z'
    assert.equal((await admin.get(`${path}/mailbox-providers?${longest}`)).status, 200)
  })

  test('says until when everything is counted', async () => {
    const { path } = await makeSender()
    await database.query('update mail.mailbox_provider_progress set counted_until = $1', [hoursAgo(1)])
    const { counted_until } = (await admin.get(`${path}/mailbox-providers`)).body
    assert.equal(counted_until, hoursAgo(1).toISOString())
  })

  test('returns 404 for a missing project', async () => {
    assertProblem(await admin.get('/projects/999999999/mailbox-providers'), 404, 'not_found')
  })

  test('returns the same to an API key with the scope, for its own project', async () => {
    const [{ id, path }, other] = [await makeSender(), await makeSender()]
    await addCount(id, 1, 'gmail', 5)
    await addCount(other.id, 1, 'gmail', 7)
    const { secret } = await makeApiKey(id, { scopes: ['usage:read'], allowed_ips: [] })
    const program = new Client(api.url, secret, '/v1')
    const { status, body } = await program.get('/mailbox-providers')
    assert.equal(status, 200)
    assert.deepEqual(body, (await admin.get(`${path}/mailbox-providers`)).body)
    assert.equal(body.mailbox_providers[0].sent, 5)
    assertProblem(await program.get('/mailbox-providers?from=yesterday'), 400, 'invalid_parameter')
    assertProblem(await program.get(`/projects/${other.id}/mailbox-providers`), 404, 'not_found')
  })
})
