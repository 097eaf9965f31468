import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { purgeMailIdempotency } from '../../core/mail/messages/idempotency.ts'
import { purge, purgedAtOnce } from '../../platform/db/purge.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { Client, signedIn } from '../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'

/** Everything that is stored counts towards a quota (H8 in docs/security.md). */
const database = await testDatabase()
const bytesPerDay = 200_000
const api = await startApi(database, { POSTERN_MAX_BYTES_PER_DAY: String(bytesPerDay) })
const admin = await signedIn(api)
const { makePlan, makeProject, makeDomain, makeApiKey } = fixtures(database, admin)

async function makeShop(limits: object = {}) {
  const { id } = await makeProject({ plan_id: (await makePlan(limits)).id })
  const { name } = await makeDomain(id, { mta_provider: 'service', status: 'verified' })
  const { secret } = await makeApiKey(id, {
    scopes: ['messages:send', 'suppressions:write', 'usage:read'],
    allowed_ips: [],
  })
  const client = new Client(api.url, secret, '/v1')
  const mail = (changes: object = {}) => ({
    ...{ from: `a@${name}`, to: ['b@example.net'], subject: 's', text: 't' },
    ...changes,
  })
  const suppress = async (address: string) =>
    assert.equal((await client.post('/suppressions', { address })).status, 201)
  const used = async (limit: string): Promise<number> => {
    const { limits } = (await client.get('/usage')).body
    return limits.find(({ name }: { name: string }) => name === limit)?.used
  }
  return { id, client, mail, suppress, used }
}

const rowsOf = async (table: string, projectId: number): Promise<number> =>
  (await database.query(`select from mail.${table} where project_id = $1`, [projectId])).length

describe('a message whose recipients are all suppressed', () => {
  test('stores no body, and its rows count towards the byte quota', async () => {
    const { id, client, mail, suppress, used } = await makeShop({
      max_mails_per_day: 0,
      max_mails_per_month: 0,
    })
    await suppress('gone@example.net')
    const answer = await client.post(
      '/messages',
      mail({ to: ['gone@example.net'], text: 'x'.repeat(50_000) }),
    )
    assert.deepEqual([answer.status, answer.body.status], [202, 'suppressed'])
    assert.deepEqual([await rowsOf('bodies', id), await rowsOf('dispatch', id)], [0, 0])
    const before = await used('max_bytes_per_day')
    assert.ok(before >= 1024 && before < 50_000, String(before))
    const batch = Array.from({ length: 500 }, () => mail({ to: ['gone@example.net'] }))
    const { data } = (await client.post('/messages/batch', { messages: batch })).body
    const taken = data.filter(({ status }: { status?: string }) => status === 'suppressed').length
    assert.ok(taken > 0 && taken < 500, 'the byte quota is reached')
    assert.equal(await rowsOf('messages', id), 1 + taken)
  })

  test('stores its body if one of several recipients is not suppressed', async () => {
    const { id, client, mail, suppress } = await makeShop()
    await suppress('gone@example.net')
    await client.post('/messages', mail({ to: ['gone@example.net', 'there@example.net'] }))
    assert.equal(await rowsOf('bodies', id), 1)
  })
})

describe('the byte quota', () => {
  test('is counted and shown, and a request that would exceed it is rejected and stores nothing', async () => {
    const { id, client, mail, used } = await makeShop()
    const half = mail({ text: 'x'.repeat(bytesPerDay / 2) })
    assert.equal((await client.post('/messages', half)).status, 202)
    const after = await used('max_bytes_per_day')
    assert.ok(after > bytesPerDay / 2 && after < bytesPerDay, String(after))
    const refused = await client.post('/messages', half)
    assert.deepEqual([refused.status, refused.body.error], [429, 'quota_exceeded'])
    assert.match(refused.body.message, /200000 bytes per day \(max_bytes_per_day\)/)
    assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/)
    assert.equal(await used('max_bytes_per_day'), after)
    assert.equal(await rowsOf('messages', id), 1)
    assert.equal((await client.post('/messages', mail())).status, 202, 'a small message fits')
  })

  test('is not exceeded by concurrent requests', async () => {
    const { id, client, mail, used } = await makeShop()
    const third = mail({ text: 'x'.repeat(bytesPerDay / 3) })
    const answers = await Promise.all(Array.from({ length: 8 }, () => client.post('/messages', third)))
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [202, 202, ...Array(6).fill(429)])
    assert.ok((await used('max_bytes_per_day')) <= bytesPerDay)
    assert.equal(await rowsOf('bodies', id), 2)
  })

  test('counts metadata', async () => {
    const { client, mail, used } = await makeShop()
    await client.post('/messages', mail({ metadata: { note: 'x'.repeat(500) } }))
    assert.ok((await used('max_bytes_per_day')) > 1024 + 500)
  })
})

describe('the response to a batch with an Idempotency-Key', () => {
  const key = (name: string) => ({ 'idempotency-key': name })
  const faulty = () => Object.fromEntries(Array.from({ length: 10 }, (_, no) => [`${no}`.repeat(98), 1]))

  test('is not stored if every message was rejected', async () => {
    const { id, client, mail } = await makeShop()
    const messages = Array.from({ length: 100 }, faulty)
    assert.equal((await client.post('/messages/batch', { messages }, key('a'))).status, 202)
    assert.equal(await rowsOf('idempotency', id), 0)
    // The corrected request, with the same key.
    const { data } = (await client.post('/messages/batch', { messages: [mail()] }, key('a'))).body
    assert.equal(data[0].status, 'queued')
  })

  test('is stored if one message was accepted, with shortened errors, and is replayed unchanged', async () => {
    const { id, client, mail } = await makeShop()
    const messages = [mail(), ...Array.from({ length: 100 }, faulty)]
    const first = await client.post('/messages/batch', { messages }, key('b'))
    const again = await client.post('/messages/batch', { messages }, key('b'))
    assert.equal(again.text, first.text)
    assert.equal(again.headers.get('idempotent-replayed'), 'true')
    for (const { message } of first.body.data.slice(1)) assert.ok(message.length <= 300)
    assert.equal(await rowsOf('messages', id), 1)
  })
})

describe('a purge', () => {
  test('deletes a limited number of rows per transaction until no row is left', async () => {
    const { id } = await makeShop()
    const count = 2 * purgedAtOnce + 1
    await database.query(
      `insert into mail.idempotency (project_id, actor, operation, key, request_hash, status, body, expires_at)
       select $1, 'key:1', 'messages.send', 'old' || no, sha256(no::text::bytea), 202, '{}', now() - interval '1 hour'
         from generate_series(1, $2) as no`,
      [id, count],
    )
    const steps: number[] = []
    await purge(openDatabase(database).as('mail'), async (tx) => {
      const deleted = await purgeMailIdempotency(tx)
      steps.push(deleted)
      return deleted
    })
    assert.deepEqual(steps, [purgedAtOnce, purgedAtOnce, 1])
    assert.equal(await rowsOf('idempotency', id), 0)
  })
})
