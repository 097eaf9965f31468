import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { purgeIdempotency } from '../../core/control/idempotency/idempotency.ts'
import type { ErrorCode } from '../../platform/errors.ts'
import { mutationScenarios, reason } from '../../testing/expectations/mutations.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { endpointConfiguration, fixtures, planConfiguration } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { dump, watchRows } from '../../testing/harness/dump.ts'
import { holdingBack } from '../../testing/harness/lock-queue.ts'
import { isMutation, type Mutation } from '../operation.ts'
import { adminOperations } from '../routes.ts'
import { methodOf } from '../schema.ts'

const database = await testDatabase()
const api = await startApi(database, { POSTERN_DATABASE_POOL_SIZE: '16' })
const admin = await signedIn(api)
const colleague = await signedIn(api)
const make = fixtures(database, admin)
const scenarios = mutationScenarios(database, admin)
const repeatable = adminOperations.filter(isMutation)

let keys = 0
const newKey = () => ({ 'idempotency-key': `key-${++keys}` })

async function requestFor(operation: Mutation) {
  const [scenario] = scenarios[operation.id] ?? assert.fail(`${operation.id} has no scenario`)
  const { path, body } = (await scenario?.prepare()) ?? assert.fail()
  return { path, body: { ...body, reason } }
}

const isReplayed = ({ headers }: Answer): boolean => headers.get('idempotent-replayed') === 'true'

/** Everything that a caller could use to distinguish two responses. */
const essence = ({ status, text, headers }: Answer) => ({
  status,
  text,
  type: headers.get('content-type'),
  etag: headers.get('etag'),
  location: headers.get('location'),
})

function assertRefused(answer: Answer, status: number, error: ErrorCode): void {
  assertProblem(answer, status, error)
  assert.ok(!isReplayed(answer))
}

const auditRows = async (operation: string, key: string): Promise<number> => {
  const [row] = await database.query<{ count: number }>(
    'select count(*)::int from control.audit where operation = $1 and reason = $2',
    [operation, key],
  )
  return row?.count ?? Number.NaN
}

describe('Idempotency-Key', () => {
  for (const operation of repeatable.filter(({ revealsSecret }) => !revealsSecret)) {
    test(`on ${operation.id}: the same request returns the first response, byte for byte, and has no second effect`, async () => {
      const { path, body } = await requestFor(operation)
      const send = (...request: [path: string, body: object, key: Record<string, string>]) =>
        admin.request(methodOf(operation), ...request)
      const key = newKey()
      const first = await send(path, body, key)
      assert.ok(first.status < 300 && !isReplayed(first), first.text)
      const rows = await watchRows(database)
      const otherOrder = Object.fromEntries(Object.entries(body).reverse())
      for (const again of [await send(path, body, key), await send(path, otherOrder, key)]) {
        assert.ok(isReplayed(again))
        assert.deepEqual(essence(again), essence(first))
        assert.notEqual(again.headers.get('x-request-id'), first.headers.get('x-request-id'))
      }
      await rows.assertUntouched()
    })
  }

  for (const operation of repeatable.filter(({ revealsSecret }) => revealsSecret)) {
    test(`on ${operation.id}: a repeated request returns the Location instead of the secret`, async () => {
      const { path, body } = await requestFor(operation)
      const send = (...request: [path: string, body: object, key: Record<string, string>]) =>
        admin.request(methodOf(operation), ...request)
      const key = newKey()
      const first = await send(path, body, key)
      assert.ok(first.status < 300, first.text)
      const { resource, secret } = first.body
      const rows = await watchRows(database, { except: ['control.denials'] })
      const again = await send(path, body, key)
      assertRefused(again, 409, 'secret_already_revealed')
      const location = again.headers.get('location') ?? assert.fail('no Location')
      assert.equal(location, first.headers.get('location'))
      assert.deepEqual((await admin.get(location.replace('/v1/admin', ''))).body, resource)
      const kept = (await dump(database)).join()
      assert.ok(!again.text.includes(secret) && !kept.includes(secret), 'the secret was stored')
      await rows.assertUntouched()
    })
  }

  test('returns the first response even if the resource has changed since', async () => {
    const key = newKey()
    const first = await admin.post('/plans', planConfiguration, key)
    await admin.patch(`/plans/${first.body.id}`, { price: 99 })
    const again = await admin.post('/plans', planConfiguration, key)
    assert.deepEqual(essence(again), essence(first))
    assert.equal((await admin.get(`/plans/${first.body.id}`)).body.price, 99)
  })

  test('is checked before If-Match: a repeated rotation is not stale', async () => {
    const { id } = await make.makeProject()
    const { resource } = await make.makeEndpoint(id)
    const path = `/projects/${id}/endpoints/${resource.id}/rotate`
    const headers = { ...newKey(), 'if-match': '"1"' }
    assert.equal((await admin.post(path, { reason }, headers)).status, 200)
    assertRefused(await admin.post(path, { reason }, headers), 409, 'secret_already_revealed')
    assertRefused(await admin.post(path, { reason }, { 'if-match': '"1"' }), 412, 'stale_resource')
  })

  test('of a domain edit keeps the DNS records of the first response valid', async () => {
    const { id } = await make.makeProject()
    const { id: domainId } = await make.makeDomain(id)
    const path = `/projects/${id}/domains/${domainId}`
    const [key, body] = [newKey(), { mta_provider: 'ses' }]
    const first = await admin.patch(path, body, key)
    assert.equal(first.status, 200, first.text)
    assert.deepEqual(essence(await admin.patch(path, body, key)), essence(first))
    const { body: now } = await admin.get(path)
    assert.equal(now.identity.id, first.body.identity.id)
  })

  test('of a DELETE applies only to that request: another request gets 404', async () => {
    const { id } = await make.makeProject()
    const { resource } = await make.makeEndpoint(id)
    const path = `/projects/${id}/endpoints/${resource.id}`
    const key = newKey()
    assert.equal((await admin.delete(path, { reason }, key)).status, 204)
    const again = await admin.delete(path, { reason }, key)
    assert.ok(again.status === 204 && isReplayed(again) && again.text === '')
    assertRefused(await admin.delete(path, { reason: 'Another' }, key), 404, 'not_found')
    assertRefused(await admin.delete(path, { reason }, newKey()), 404, 'not_found')
  })

  test('of a different request is rejected, and nothing changes', async () => {
    const [a, b] = [await make.makeProject(), await make.makeProject()]
    const key = newKey()
    const body = { email: 'grace@example.net', role: 'developer' }
    assert.equal((await admin.post(`/projects/${a.id}/members`, body, key)).status, 201)
    const rows = await watchRows(database, { except: ['control.denials'] })
    for (const [projectId, other] of [
      [a.id, { ...body, role: 'viewer' }],
      [a.id, { ...body, email: 'Grace@example.net' }],
      [a.id, { ...body, reason }],
      [b.id, body],
    ] as const) {
      const refused = await admin.post(`/projects/${projectId}/members`, other, key)
      assertRefused(refused, 422, 'idempotency_key_reused')
    }
    await rows.assertUntouched()
  })

  test('is scoped to the administrator and operation, and is case-sensitive', async () => {
    const { id } = await make.makeProject()
    const key = newKey()
    const path = `/projects/${id}/endpoints`
    const answers = [
      await admin.post(path, endpointConfiguration, key),
      await colleague.post(path, endpointConfiguration, key),
      await admin.post('/plans', planConfiguration, key),
      await admin.post(path, endpointConfiguration, {
        'idempotency-key': key['idempotency-key'].toUpperCase(),
      }),
    ]
    for (const answer of answers) assert.ok(answer.status === 201 && !isReplayed(answer), answer.text)
    assert.equal((await admin.get(path)).body.data.length, 3)
  })

  test('is not used up by a failed request', async () => {
    const { id } = await make.makeProject({ plan_id: (await make.makePlan({ max_users: 1 })).id })
    const path = `/projects/${id}/members`
    const key = newKey()
    const body = { email: 'grace@example.net', role: 'developer' }
    assertRefused(await admin.post('/projects/4711/members', body, key), 404, 'not_found')
    assertRefused(await admin.post(path, { ...body, role: 'king' }, key), 422, 'validation_failed')
    assertRefused(await admin.post(path, { ...body, email: 'nobody' }, key), 422, 'validation_failed')
    assertRefused(await admin.post(path, body, key), 422, 'limit_exceeded')
    const first = await admin.post(path, { ...body, reason }, key)
    assert.ok(first.status === 201 && !isReplayed(first), first.text)
    const again = await admin.post(path, { ...body, reason }, key)
    assert.ok(isReplayed(again))
    assert.deepEqual(essence(again), essence(first))
  })

  test('is rejected on every mutation if it is invalid', async () => {
    const rows = await watchRows(database)
    for (const bad of ['', 'two words', 'x'.repeat(256), 'tab\there', 'schlüssel']) {
      for (const operation of ['POST', 'PATCH']) {
        const path = operation === 'POST' ? '/plans' : '/plans/1'
        const headers = { 'idempotency-key': bad }
        assertRefused(
          await admin.request(operation, path, planConfiguration, headers),
          400,
          'invalid_parameter',
        )
      }
    }
    await rows.assertUntouched()
    const longest = { 'idempotency-key': `${'x'.repeat(254)}~` }
    assert.equal((await admin.post('/plans', planConfiguration, longest)).status, 201)
  })
})

describe('Idempotency-Key over time', () => {
  test('is valid for 24 hours by the database clock, and can then be reused', async () => {
    const aging = await testDatabase()
    const { email } = await (await startApi(aging)).makeAdmin()
    // A database setting applies to connections opened afterwards, so each case has its own API.
    const at = async (offset: string) => {
      const name = new URL(aging.url).pathname.slice(1)
      await aging.query(`alter database ${name} set postern.clock_offset = '${offset}'`)
      const later = await startApi(aging)
      const client = new Client(later.url, await later.tokenOf(email))
      const key = { 'idempotency-key': 'the-same' }
      return { later, create: (name: string) => client.post('/plans', { ...planConfiguration, name }, key) }
    }
    const now = await at('0')
    const first = await now.create('First')
    assert.equal(first.status, 201)
    const justBefore = await at('23 hours 59 minutes')
    assert.deepEqual(essence(await justBefore.create('First')), essence(first))
    assertRefused(await justBefore.create('Second'), 422, 'idempotency_key_reused')
    assert.equal(await justBefore.later.context.db.admin.transaction(purgeIdempotency), 0)

    const after = await at('24 hours 1 minute')
    const second = await after.create('Second')
    assert.ok(second.status === 201 && !isReplayed(second), second.text)
    assert.notEqual(second.body.id, first.body.id)
    assert.deepEqual(essence(await after.create('Second')), essence(second))
    assertRefused(await after.create('First'), 422, 'idempotency_key_reused')
    assert.equal(await after.later.context.db.admin.transaction(purgeIdempotency), 0)

    const muchLater = await at('49 hours')
    assert.equal(await muchLater.later.context.db.admin.transaction(purgeIdempotency), 1)
  })

  test('of a running request is rejected until that request has finished', async () => {
    const { id } = await make.makeProject()
    const path = `/projects/${id}/members`
    const body = { email: 'grace@example.net', role: 'developer' }
    const key = newKey()
    const locked = `select from control.projects where id = ${id} for update`
    const first = await holdingBack(
      database,
      locked,
      () => admin.post(path, body, key),
      async () => {
        for (const other of [body, { ...body, role: 'viewer' }]) {
          const refused = await admin.post(path, other, key)
          assertRefused(refused, 409, 'request_in_progress')
          assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/)
        }
        const { id: otherId } = await make.makeProject()
        const strangers = await colleague.post(`/projects/${otherId}/members`, body, key)
        assert.equal(strangers.status, 201, "another administrator's key is a different key")
      },
    )
    assert.ok(first.status === 201 && !isReplayed(first), first.text)
    const again = await admin.post(path, body, key)
    assert.ok(isReplayed(again))
    assert.deepEqual(essence(again), essence(first))
  })
})

/**
 * Forty at a time: a request that waits five seconds for a database connection is rejected, and that must not happen
 * on a slow machine.
 */
async function times(count: number, send: () => Promise<Answer>): Promise<Answer[]> {
  const answers: Promise<Answer>[] = []
  const caller = async () => {
    while (answers.length < count) {
      const answer = send()
      answers.push(answer)
      await answer
    }
  }
  await Promise.all(Array.from({ length: 40 }, caller))
  return Promise.all(answers)
}

describe('Idempotency-Key of concurrent requests', () => {
  test('has one effect and one audit row, and each of 1,000 requests gets the same response or request_in_progress', async () => {
    const { id } = await make.makeProject()
    const path = `/projects/${id}/members`
    const key = newKey()
    const mark = key['idempotency-key']
    const body = { email: 'grace@example.net', role: 'developer', reason: mark }
    const answers = await times(1000, () => admin.post(path, body, key))
    const done = answers.filter(({ status }) => status === 201)
    for (const answer of answers) {
      if (answer.status !== 201) assertRefused(answer, 409, 'request_in_progress')
    }
    assert.equal(done.filter((answer) => !isReplayed(answer)).length, 1)
    assert.equal(new Set(done.map((answer) => JSON.stringify(essence(answer)))).size, 1)
    const { data } = (await admin.get(path)).body
    assert.deepEqual(
      data.map(({ role }: { role: string }) => role),
      ['developer', 'owner'],
    )
    assert.equal(await auditRows('members.create', mark), 1)
  })

  test('reveals a secret to only one of them', async () => {
    const { id } = await make.makeProject()
    const path = `/projects/${id}/endpoints`
    const key = newKey()
    const mark = key['idempotency-key']
    const body = { ...endpointConfiguration, reason: mark }
    const answers = await times(200, () => admin.post(path, body, key))
    const refused = answers.filter(({ status }) => status !== 201)
    assert.equal(refused.length, 199)
    for (const answer of refused) {
      assert.equal(answer.status, 409, answer.text)
      assert.ok(['request_in_progress', 'secret_already_revealed'].includes(answer.body.error))
      assert.doesNotMatch(answer.text, /whsec_/)
    }
    assert.equal((await admin.get(path)).body.data.length, 1)
    assert.equal(await auditRows('endpoints.create', mark), 1)
  })
})
