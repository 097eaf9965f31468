import assert from 'node:assert/strict'
import { type IncomingHttpHeaders, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { customers } from '../../testing/fixtures/customers.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'

/** Large bodies that are rejected before they are read (H4 in docs/security.md). */
const database = await testDatabase()
const api = await startApi(database)
const { admin, make, ownProject, stranger } = await customers(api, database)

const mebibyte = 1024 * 1024

async function makeSender({
  quota = 100,
  status = 'verified',
}: {
  quota?: number
  status?: 'verified' | 'pending'
} = {}) {
  const plan = await make.makePlan({ max_mails_per_day: quota, max_mails_per_month: quota })
  const { owner, project } = await ownProject({ plan_id: plan.id })
  const domain = await make.makeDomain(project.id, { mta_provider: 'service', status })
  const { secret } = await make.makeApiKey(project.id, { allowed_ips: [] })
  return { id: project.id, plan, owner, domain, secret }
}

type Sender = Awaited<ReturnType<typeof makeSender>>

interface Answer {
  status: number | undefined
  error: string | undefined
  headers: IncomingHttpHeaders
  text: string
}

interface Sent {
  path?: string
  headers?: Record<string, string>
}

function post(authorization: string, length: object, { path = '/messages', headers = {} }: Sent) {
  const call = request(`${api.url}/v1${path}`, {
    method: 'POST',
    agent: false,
    headers: {
      ...{ authorization, connection: 'keep-alive', 'content-type': 'application/json' },
      ...length,
      ...headers,
    },
  })
  const answer = new Promise<Answer>((resolve, reject) => {
    call.once('error', reject)
    call.once('response', async (response) => {
      const body = await text(response)
      const { statusCode: status, headers } = response
      const { error } = JSON.parse(body)
      resolve({ status, error, headers, text: body })
    })
  })
  return { call, answer }
}

/** Sends the header and the first bytes of 30 MiB, and never the rest. */
async function begin(bearer: string, sent: Sent = {}) {
  const { call, answer } = post(`Bearer ${bearer}`, { 'content-length': 30 * mebibyte }, sent)
  call.write('{"from":"a@')
  const { status, error, headers } = await answer
  return [status, error, headers.connection]
}

function send(bearer: string, body: string, sent: Sent = {}) {
  const { call, answer } = post(`Bearer ${bearer}`, { 'content-length': Buffer.byteLength(body) }, sent)
  call.end(body)
  return answer
}

const bodyOf = ({ domain }: Sender, bytes: number): string =>
  JSON.stringify({
    from: `a@${domain.name}`,
    to: ['b@example.net'],
    subject: 's',
    text: 'x'.repeat(bytes),
  })

async function edit({ id }: Sender, change: object): Promise<void> {
  const answer = await admin.patch(`/projects/${id}`, { ...change, reason: 'For the test' })
  assert.equal(answer.status, 200, answer.text)
}

describe('a large body is rejected before it is received', () => {
  test('in the order of the sending checks, by both operations', async () => {
    const sender = await makeSender({ quota: 0, status: 'pending' })
    await edit(sender, { is_locked: true, admin_subscription_status: 'paused' })
    const refused = async (status: number, error: string) => {
      for (const path of ['/messages', '/messages/batch']) {
        assert.deepEqual(await begin(sender.secret, { path }), [status, error, 'close'], path)
      }
    }
    await refused(403, 'project_locked')
    await edit(sender, { is_locked: false })
    await refused(403, 'subscription_inactive')
    await edit(sender, { admin_subscription_status: 'active' })
    await refused(403, 'domain_not_verified')
    await database.query(`update control.domains set status = 'verified' where project_id = $1`, [sender.id])
    await refused(429, 'quota_exceeded')
  })

  test('when the monthly quota is used up and the daily quota is not', async () => {
    const sender = await makeSender()
    await database.query(
      `insert into mail.usage (project_id, period, starts_on, accepted)
       values ($1, 'month', date_trunc('month', postern.now() at time zone 'UTC')::date, 100)`,
      [sender.id],
    )
    assert.deepEqual(await begin(sender.secret), [429, 'quota_exceeded', 'close'])
  })

  test('when the domain is verified and its identity is deleted', async () => {
    const sender = await makeSender()
    await database.query(
      `update control.identities set state = 'retiring', retiring_at = postern.now() where domain_id = $1`,
      [sender.domain.id],
    )
    assert.deepEqual(await begin(sender.secret), [403, 'domain_not_verified', 'close'])
  })

  test('if the key is bound to an unverified domain, and not for any other key', async () => {
    const sender = await makeSender()
    const other = await make.makeDomain(sender.id, { mta_provider: 'service' })
    const bound = await make.makeApiKey(sender.id, { allowed_ips: [], domain_id: other.id })
    assert.deepEqual(await begin(bound.secret), [403, 'domain_not_verified', 'close'])
    assert.equal((await send(sender.secret, bodyOf(sender, 100_000))).status, 202)
  })

  test('from a member', async () => {
    const sender = await makeSender({ quota: 0 })
    const { authorization } = sender.owner.headers
    assert.deepEqual(
      await begin(authorization.slice('Bearer '.length), { path: `/projects/${sender.id}/messages` }),
      [...[429, 'quota_exceeded', 'close']],
    )
  })

  test('if its length is unknown', async () => {
    const sender = await makeSender({ quota: 0 })
    const { call, answer } = post(`Bearer ${sender.secret}`, { 'transfer-encoding': 'chunked' }, {})
    call.write('{')
    assert.equal((await answer).error, 'quota_exceeded')
  })

  test('and a client that sends the whole body gets the response', async () => {
    const sender = await makeSender({ quota: 0 })
    for (let no = 0; no < 5; no++) {
      const { error, headers } = await send(sender.secret, bodyOf(sender, 20 * mebibyte))
      assert.deepEqual([error, headers.connection], ['quota_exceeded', 'close'])
    }
  })
})

describe('a large request with a stored response', () => {
  test('gets its stored response even if its project is locked and its quota is used up', async () => {
    const sender = await makeSender({ quota: 1 })
    const sent = { headers: { 'idempotency-key': 'order-7' } }
    const body = bodyOf(sender, 100_000)
    const first = await send(sender.secret, body, sent)
    assert.equal(first.status, 202, first.text)
    const other = { headers: { 'idempotency-key': 'order-8' } }
    assert.deepEqual(await begin(sender.secret, other), [429, 'quota_exceeded', 'close'])
    await edit(sender, { is_locked: true })
    assert.deepEqual(await begin(sender.secret, other), [403, 'project_locked', 'close'])
    const second = await send(sender.secret, body, sent)
    assert.deepEqual([second.text, second.headers['idempotent-replayed']], [first.text, 'true'])
    await database.query(`update mail.idempotency set expires_at = postern.now() where project_id = $1`, [
      sender.id,
    ])
    assert.deepEqual(await begin(sender.secret, sent), [403, 'project_locked', 'close'])
  })
})

describe('other requests', () => {
  test('a small body is read, and then rejected by the sending checks', async () => {
    const sender = await makeSender({ quota: 0 })
    assert.equal((await send(sender.secret, '{')).error, 'invalid_json')
    const { error, headers } = await send(sender.secret, bodyOf(sender, 10))
    assert.deepEqual([error, headers.connection], ['quota_exceeded', 'keep-alive'])
  })

  test('a caller without access gets 404 for the project', async () => {
    const sender = await makeSender({ quota: 0 })
    const { authorization } = (await stranger()).headers
    const sent = { path: `/projects/${sender.id}/messages` }
    const [status, error] = await begin(authorization.slice('Bearer '.length), sent)
    assert.deepEqual([status, error], [404, 'not_found'])
  })
})
