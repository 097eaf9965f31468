import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

/** Messages over HTTP: acceptance, the order of checks, and reading. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makePlan, makeProject, makeDomain, makeApiKey } = fixtures(database, admin)

const everything = ['messages:send', 'messages:read', 'suppressions:read', 'suppressions:write', 'usage:read']

async function shop(limits: { max_mails_per_day?: number } = {}, changes: object = {}) {
  const { id } = await makeProject({ plan_id: (await makePlan(limits)).id })
  const domain = await makeDomain(id, { mta_provider: 'service', status: 'verified' })
  const { secret, resource } = await makeApiKey(id, {
    scopes: everything as never,
    allowed_ips: [],
    ...changes,
  })
  return { id, domain, key: resource, client: new Client(api.url, secret, '/v1') }
}

type Shop = Awaited<ReturnType<typeof shop>>

const mailOf = ({ domain }: Shop, changes: object = {}) => ({
  from: `Shop <hello@${domain.name}>`,
  to: ['someone@example.net'],
  subject: 'Your order',
  text: 'It is on its way.',
  ...changes,
})

const send = (at: Shop, changes: object = {}, headers: Record<string, string> = {}): Promise<Answer> =>
  at.client.post('/messages', mailOf(at, changes), headers)

const errorOf = ({ status, body }: Answer) => [status, body.error]

describe('POST /v1/messages', () => {
  test('accepts a message and returns its id; its status can be read', async () => {
    const at = await shop()
    const answer = await send(at, { cc: ['b@example.net'], tags: ['order'], metadata: { order: '7' } })
    assert.equal(answer.status, 202, answer.text)
    assert.deepEqual(Object.keys(answer.body), ['id', 'status', 'created_at'])
    assert.equal(answer.body.status, 'queued')
    const shown = (await at.client.get(`/messages/${answer.body.id}`)).body
    assert.deepEqual(
      {
        ...shown,
        recipients: shown.recipients.map(({ updated_at, ...rest }: { updated_at: string }) => rest),
      },
      {
        id: answer.body.id,
        project_id: at.id,
        status: 'queued',
        from: `hello@${at.domain.name}`,
        subject: 'Your order',
        recipients: [
          { address: 'someone@example.net', kind: 'to', status: 'queued', diagnostic: null },
          { address: 'b@example.net', kind: 'cc', status: 'queued', diagnostic: null },
        ],
        tags: ['order'],
        metadata: { order: '7' },
        size_bytes: 27,
        is_test: false,
        api_key_id: at.key.id,
        user_id: null,
        send_at: null,
        created_at: answer.body.created_at,
      },
    )
    const { data } = (await at.client.get(`/messages/${answer.body.id}/events`)).body
    assert.deepEqual(
      data.map(({ type }: { type: string }) => type),
      ['message.accepted'],
    )
  })

  test('runs the sending checks in order, and a reason bypasses none of them', async () => {
    const at = await shop({ max_mails_per_day: 0 })
    const { id } = at
    const edit = async (change: object) => {
      const answer = await admin.patch(`/projects/${id}`, { ...change, reason: 'For the test' })
      assert.equal(answer.status, 200, answer.text)
    }
    // All checks fail at first; correcting one reveals the next.
    await edit({ is_locked: true, admin_subscription_status: 'paused' })
    await database.query(`update control.domains set status = 'pending' where project_id = $1`, [id])
    await edit({ allow_service_mta: false })
    const many = Array.from({ length: 51 }, (_, n) => `r${n}@example.net`)
    const attempt = async () => errorOf(await send(at, { to: many }))
    assert.deepEqual(await attempt(), [403, 'project_locked'])
    await edit({ is_locked: false })
    assert.deepEqual(await attempt(), [403, 'subscription_inactive'])
    await edit({ admin_subscription_status: 'past_due' })
    assert.deepEqual(await attempt(), [403, 'domain_not_verified'])
    await database.query(`update control.domains set status = 'verified' where project_id = $1`, [id])
    assert.deepEqual(await attempt(), [422, 'provider_not_allowed'])
    await edit({ allow_service_mta: true })
    assert.deepEqual(await attempt(), [422, 'validation_failed'])
    const quota = await send(at)
    assert.deepEqual(errorOf(quota), [429, 'quota_exceeded'])
    assert.match(quota.headers.get('retry-after') ?? '', /^\d+$/)
    await edit({ admin_plan_id: (await makePlan()).id })
    assert.equal((await send(at)).status, 202)
    assert.deepEqual(errorOf(await at.client.post('/messages', { ...mailOf(at), reason: 'Please' })), [
      422,
      'validation_failed',
    ])
  })

  for (const [status, code] of Object.entries({
    trialing: 202,
    active: 202,
    past_due: 202,
    canceled: 403,
    paused: 403,
  })) {
    test(`with the subscription status ${status} returns ${code}`, async () => {
      const at = await shop()
      await admin.patch(`/projects/${at.id}`, { admin_subscription_status: status, reason: 'For the test' })
      assert.equal((await send(at)).status, code)
    })
  }

  test("accepts only senders at one of the project's verified domains, and only at the key's domain if the key is bound to one", async () => {
    const [one, other] = [await shop(), await shop()]
    assert.deepEqual(errorOf(await send(one, { from: `a@${other.domain.name}` })), [
      403,
      'domain_not_verified',
    ])
    assert.deepEqual(errorOf(await send(one, { from: `a@sub.${one.domain.name}` })), [
      403,
      'domain_not_verified',
    ])
    const second = await makeDomain(one.id, { mta_provider: 'service', status: 'verified' })
    const { secret } = await makeApiKey(one.id, {
      scopes: ['messages:send'],
      allowed_ips: [],
      domain_id: second.id,
    })
    const bound = { ...one, client: new Client(api.url, secret, '/v1') }
    assert.deepEqual(errorOf(await send(bound)), [403, 'domain_not_verified'])
    assert.equal((await send(bound, { from: `a@${second.name}` })).status, 202)
  })

  const malformed: Record<string, object> = {
    'no recipient': { to: [] },
    '51 recipients': {
      to: Array.from({ length: 49 }, (_, n) => `a${n}@example.net`),
      bcc: ['x@example.net', 'y@example.net'],
    },
    'neither text nor html': { text: null },
    'a line break in the subject': { subject: 'a\r\nBcc: eve@example.net' },
    'a line break in a name': { from: 'A\r\nBcc: eve@example.net <a@example.org>' },
    'a header that only the service writes': { headers: { 'DKIM-Signature': 'v=1' } },
    'a header with a line break': { headers: { 'X-A': 'a\r\nBcc: eve@example.net' } },
    'a header whose name has a line break': { headers: { 'X-A\r\nBcc': 'eve@example.net' } },
    'an attachment that is not Base64': { attachments: [{ filename: 'a.txt', content: '***' }] },
    'an attachment with a path': { attachments: [{ filename: '../a.txt', content: '' }] },
    'an attachment of type message/rfc822': {
      attachments: [{ filename: 'a', content: '', content_type: 'message/rfc822' }],
    },
    'a time too far in the future': { send_at: new Date(Date.now() + 31 * 24 * 3600_000).toISOString() },
    'an unknown field': { priority: 'high' },
    'a number instead of a string': { subject: 7 },
  }
  for (const [what, change] of Object.entries(malformed)) {
    test(`with ${what} is rejected, and nothing is stored`, async () => {
      const at = await shop()
      assert.deepEqual(errorOf(await send(at, change)), [422, 'validation_failed'])
      assert.equal(
        (await database.query('select from mail.messages where project_id = $1', [at.id])).length,
        0,
      )
    })
  }

  test('of more than 25 MiB is rejected', async () => {
    const at = await shop()
    const content = Buffer.alloc(20 * 1024 * 1024).toString('base64')
    assert.deepEqual(errorOf(await send(at, { attachments: [{ filename: 'a.bin', content }] })), [
      422,
      'validation_failed',
    ])
    assert.equal(
      (await send(at, { attachments: [{ filename: 'a.bin', content: content.slice(0, 1024 * 1024) }] }))
        .status,
      202,
    )
  })

  test('returns the stored response if repeated with its Idempotency-Key', async () => {
    const at = await shop()
    const key = { 'idempotency-key': 'order-7' }
    const first = await send(at, {}, key)
    const second = await send(at, {}, key)
    assert.equal(second.text, first.text)
    assert.equal(second.headers.get('idempotent-replayed'), 'true')
    assert.deepEqual(errorOf(await send(at, { subject: 'Another' }, key)), [422, 'idempotency_key_reused'])
    const [other] = [await shop()]
    assert.notEqual((await send(other, {}, key)).body.id, first.body.id)
  })
})

describe('a domain whose provider is not configured', () => {
  test('is rejected immediately', async () => {
    const at = await shop()
    const other = await makeDomain(at.id, { mta_provider: 'ses', status: 'verified' })
    assert.deepEqual(errorOf(await send(at, { from: `a@${other.name}` })), [422, 'provider_not_allowed'])
  })
})

describe('POST /v1/messages/batch', () => {
  test('accepts or rejects each message separately', async () => {
    const at = await shop({ max_mails_per_day: 2 })
    const answer = await at.client.post('/messages/batch', {
      messages: [mailOf(at), mailOf(at, { from: 'a@example.net' }), mailOf(at), mailOf(at)],
    })
    assert.equal(answer.status, 202, answer.text)
    assert.deepEqual(
      answer.body.data.map((one: { status?: string; error?: string }) => one.status ?? one.error),
      ['queued', 'domain_not_verified', 'queued', 'quota_exceeded'],
    )
    assert.deepEqual(Object.keys(answer.body.data[1]), ['error', 'message'])
  })

  test('rejects invalid messages individually, and more than 500 messages as a whole', async () => {
    const at = await shop()
    const batch = (messages: object[]) => at.client.post('/messages/batch', { messages })
    const { body } = await batch([mailOf(at), { to: 7 }, mailOf(at, { tags: ['not a tag'] }), mailOf(at)])
    assert.deepEqual(
      body.data.map((one: { status?: string; error?: string }) => one.status ?? one.error),
      ['queued', 'validation_failed', 'validation_failed', 'queued'],
    )
    assert.deepEqual(errorOf(await batch(Array.from({ length: 501 }, () => mailOf(at)))), [
      422,
      'validation_failed',
    ])
    assert.equal((await batch(Array.from({ length: 500 }, () => mailOf(at)))).body.data.length, 500)
  })
})

describe('reading messages', () => {
  test('lists them newest first, by page, recipient, status and tag', async () => {
    const at = await shop()
    const ids: string[] = []
    for (const n of [1, 2, 3, 4, 5]) {
      const { body } = await send(at, { to: [`R${n % 2}@example.net`], tags: n > 3 ? ['late'] : [] })
      ids.unshift(body.id)
    }
    const list = async (query: string) => {
      const { body } = await at.client.get(`/messages?${query}`)
      return body.data.map(({ id }: { id: string }) => id)
    }
    assert.deepEqual(await list(''), ids)
    const first = (await at.client.get('/messages?limit=2')).body
    assert.deepEqual(
      [
        ...first.data.map(({ id }: { id: string }) => id),
        ...(await list(`limit=9&cursor=${first.next_cursor}`)),
      ],
      ids,
    )
    assert.deepEqual(await list('recipient=r1@EXAMPLE.net'), [ids[0], ids[2], ids[4]])
    assert.deepEqual(await list('tag=late'), ids.slice(0, 2))
    await database.query(`update mail.recipients set status = 'bounced' where message_id = $1`, [ids[3]])
    assert.deepEqual(await list('status=bounced'), [ids[3]])
    assert.deepEqual(await list('status=bounced&recipient=r1@example.net'), [])
    assert.equal((await at.client.get('/messages?cursor=nonsense')).status, 400)
  })

  test("does not return another project's messages", async () => {
    const [one, other] = [await shop(), await shop()]
    const { id } = (await send(other)).body
    const absent = '01939f0e-7b1a-7c3e-9d2f-0123456789ab'
    for (const path of [`/messages/${id}`, `/messages/${id}/events`]) {
      const answer = await one.client.get(path)
      assert.equal(answer.status, 404)
      assert.equal(answer.text.replaceAll(id, absent), (await one.client.get(path.replace(id, absent))).text)
    }
    assert.deepEqual((await one.client.get('/messages')).body.data, [])
  })

  test("shows a locked project's mail as held", async () => {
    const at = await shop()
    const { id } = (await send(at)).body
    await admin.patch(`/projects/${at.id}`, { is_locked: true, reason: 'Card testing' })
    assert.equal((await at.client.get(`/messages/${id}`)).body.status, 'held')
    assert.equal((await admin.get(`/projects/${at.id}/messages/${id}`)).body.status, 'held')
  })
})

describe('a scheduled message', () => {
  test('can be canceled until sending begins', async () => {
    const at = await shop()
    const send_at = new Date(Date.now() + 3600_000).toISOString()
    const { id } = (await send(at, { send_at })).body
    const canceled = await at.client.post(`/messages/${id}/cancel`, {})
    assert.equal(canceled.status, 200, canceled.text)
    assert.equal(canceled.body.status, 'canceled')
    assert.equal((await database.query('select from mail.dispatch where message_id = $1', [id])).length, 0)
    assert.equal(
      (await at.client.post(`/messages/${id}/cancel`, {})).body.status,
      'canceled',
      'asked for again',
    )
    const { id: queued } = (await send(at)).body
    assert.deepEqual(errorOf(await at.client.post(`/messages/${queued}/cancel`, {})), [409, 'in_use'])
  })
})

describe('suppressions', () => {
  test('are created, listed, applied and deleted', async () => {
    const at = await shop()
    const made = await at.client.post('/suppressions', { address: 'Gone@example.net' })
    assert.equal(made.status, 201, made.text)
    assert.equal(made.body.address, 'gone@example.net')
    const { data } = (await at.client.get('/suppressions')).body
    assert.deepEqual(
      data.map(({ address }: { address: string }) => address),
      ['gone@example.net'],
    )
    const place = new URL(made.headers.get('location') ?? '', api.url).pathname.replace('/v1', '')
    assert.deepEqual((await at.client.get(place)).body, made.body)
    assert.equal((await send(at, { to: ['GONE@example.net'] })).body.status, 'suppressed')
    assert.equal((await at.client.delete('/suppressions/gone@example.net')).status, 204)
    assert.equal((await send(at, { to: ['gone@example.net'] })).body.status, 'queued')
    assert.deepEqual(errorOf(await at.client.delete('/suppressions/gone@example.net')), [404, 'not_found'])
  })

  test('after a complaint are shown, and cannot be deleted by a key or a member', async () => {
    const at = await shop()
    const complained = (address: string) =>
      database.query(
        `insert into mail.suppressions (project_id, address, reason) values ($1, $2, 'complaint')`,
        [at.id, address],
      )
    await complained('angry@example.net')
    const { data } = (await at.client.get('/suppressions')).body
    assert.deepEqual(
      data.map(({ address, reason }: Record<string, string>) => [address, reason]),
      [['angry@example.net', 'complaint']],
    )
    const refused = await at.client.delete('/suppressions/ANGRY@example.net')
    assert.deepEqual(errorOf(refused), [403, 'insufficient_role'])
    assert.equal((await send(at, { to: ['angry@example.net'] })).body.status, 'suppressed')
  })
})

describe('usage', () => {
  test("counts recipients today and this month, with the plan's limits", async () => {
    const at = await shop({ max_mails_per_day: 50 })
    await send(at, { to: ['a@example.net', 'b@example.net'] })
    const { body } = await at.client.get('/usage')
    assert.deepEqual([body.day.accepted, body.day.limit, body.month.accepted], [2, 50, 2])
    assert.equal(body.days.length, 30)
    assert.equal(body.days[0].accepted, 2)
    assert.deepEqual((await admin.get(`/projects/${at.id}/usage`)).body, body)
  })
})
