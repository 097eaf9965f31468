import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { reason } from '../../testing/expectations/mutations.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { endpointConfiguration, fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, Client, signedIn } from '../../testing/harness/client.ts'
import { databaseNow, testDatabase } from '../../testing/harness/database.ts'
import { dump } from '../../testing/harness/dump.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const make = fixtures(database, admin)

/** A user with a valid token who is no longer an administrator. */
async function demoted() {
  const user = await signedIn(api)
  await database.query(`update control.users set role = 'user' where id = $1`, [user.userId])
  return user
}

interface Counted {
  operation: string
  error: string
  project_id: number | null
  count: number
}

/** The number of denials counted for a user, across all minutes. */
const countedOf = (userId: number): Promise<Counted[]> =>
  database.query<Counted>(
    `select operation, error, project_id::int, sum(count)::int as count from control.denials
      where actor_id = $1 group by 1, 2, 3 order by 1, 2, 3 nulls first`,
    [userId],
  )

const minutesOf = (userId: number) =>
  database.query<{ minute: Date; count: number; last_request_id: string }>(
    'select minute, count, last_request_id from control.denials where actor_id = $1 order by minute',
    [userId],
  )

const requestIdOf = ({ headers }: Answer): string => headers.get('x-request-id') ?? assert.fail()

describe('a counted denial', () => {
  test('is every request by a user who is not an administrator, counted by operation', async () => {
    const { id } = await make.makeProject()
    const user = await demoted()
    for (const refused of [
      await user.get(`/projects/${id}`),
      await user.get('/projects/4711'),
      await user.patch(`/projects/${id}`, { is_locked: true, reason }),
      await user.post('/plans', { nonsense: true }),
      await user.get('/nothing'),
    ]) {
      assertProblem(refused, 403, 'admin_required')
    }
    const error = 'admin_required'
    assert.deepEqual(await countedOf(user.userId), [
      { operation: 'plans.create', error, project_id: null, count: 1 },
      { operation: 'projects.edit', error, project_id: null, count: 1 },
      { operation: 'projects.show', error, project_id: null, count: 2 },
      { operation: 'unknown', error, project_id: null, count: 1 },
    ])
  })

  test('is every request by an administrator without the rights, also a dry run', async () => {
    const { id } = await make.makeProject()
    const support = await signedIn(api, 'support')
    for (const refused of [
      await support.post('/plans', { nonsense: true }),
      await support.patch(`/projects/${id}`, { plan_id: 1, reason }),
      await support.patch('/projects/4711?dry_run=true', { plan_id: 1, reason }),
    ]) {
      assertProblem(refused, 403, 'insufficient_rights')
    }
    assert.equal((await support.get('/plans')).status, 200)
    const error = 'insufficient_rights'
    assert.deepEqual(await countedOf(support.userId), [
      { operation: 'plans.create', error, project_id: null, count: 1 },
      { operation: 'projects.edit', error, project_id: null, count: 2 },
    ])
  })

  test("is an administrator's mutation that a rule rejects, with its project", async () => {
    const colleague = await signedIn(api)
    const { id } = await make.makeProject({ plan_id: (await make.makePlan({ max_users: 1 })).id })
    const members = `/projects/${id}/members`
    const [owner] = (await admin.get(members)).body.data
    const key = { 'idempotency-key': 'counted' }
    const endpoints = `/projects/${id}/endpoints`
    assert.equal((await colleague.post(endpoints, endpointConfiguration, key)).status, 201)

    const newcomer = { email: 'grace@example.net', role: 'developer' }
    assertProblem(await colleague.post(members, newcomer), 422, 'limit_exceeded')
    assertProblem(await colleague.post(members, { ...newcomer, role: 'king' }), 422, 'validation_failed')
    assertProblem(await colleague.delete(`${members}/${owner.id}`, {}), 422, 'reason_required')
    assertProblem(await colleague.delete(`${members}/${owner.id}`, { reason }), 409, 'last_owner')
    assertProblem(await colleague.delete(`${members}/4711`, { reason }), 404, 'not_found')
    const stale = await colleague.patch(`/projects/${id}`, { name: 'Late' }, { 'if-match': '"4711"' })
    assertProblem(stale, 412, 'stale_resource')
    const again = await colleague.post(endpoints, endpointConfiguration, key)
    assertProblem(again, 409, 'secret_already_revealed')
    const unknown = await colleague.patch('/users/4711', { role: 'admin', reason })
    assertProblem(unknown, 404, 'not_found')

    const counted = (operation: string, error: string, project_id: number | null = id) => ({
      operation,
      error,
      project_id,
      count: 1,
    })
    assert.deepEqual(await countedOf(colleague.userId), [
      counted('endpoints.create', 'secret_already_revealed'),
      counted('members.create', 'limit_exceeded'),
      counted('members.create', 'validation_failed'),
      counted('members.delete', 'last_owner'),
      counted('members.delete', 'not_found'),
      counted('members.delete', 'reason_required'),
      counted('projects.edit', 'stale_resource'),
      counted('users.edit', 'not_found', null),
    ])
  })

  test('is listed, newest first, and can be filtered by user', async () => {
    const user = await demoted()
    await user.get('/plans')
    const last = await user.delete('/projects/1/members/1', { reason })
    const { body } = await admin.get(`/denials?actor=${user.userId}&limit=1`)
    const [{ minute, id, ...newest }] = body.data
    assert.deepEqual(newest, {
      actor_id: user.userId,
      operation: 'members.delete',
      error: 'admin_required',
      project_id: null,
      count: 1,
      last_request_id: requestIdOf(last),
    })
    assert.match(minute, /^\d{4}-\d\d-\d\dT\d\d:\d\d:00\.000Z$/)
    assert.equal(body.next_cursor !== null, true)
    const rest = await admin.get(`/denials?actor=${user.userId}&cursor=${body.next_cursor}`)
    assert.equal(rest.body.data.length, 1)
    assert.ok(rest.body.data[0].id < id)
    assert.equal(rest.body.data[0].operation, 'plans.list')
  })
})

describe('not counted as a denial', () => {
  test('is a request by an unauthenticated caller', async () => {
    const disabled = await signedIn(api)
    await database.query('update control.users set is_active = false where id = $1', [disabled.userId])
    const before = await dump(database)
    assertProblem(await disabled.patch('/projects/1', { name: 'Mine' }), 401, 'unauthenticated')
    for (const token of ['', 'nonsense', 'a.b.c']) {
      assertProblem(await new Client(api.url, token).patch('/projects/1', {}), 401, 'unauthenticated')
    }
    const anonymous = await fetch(`${api.url}/v1/admin/projects/1`, { method: 'DELETE' })
    assert.equal(anonymous.status, 401)
    assert.deepEqual(await dump(database), before)
  })

  test('is a request with an API key, or a token that looks like one', async () => {
    const before = await dump(database)
    for (const token of ['pk_live_abc', 'pk_test_abc', 'pk_']) {
      assertProblem(await new Client(api.url, token).patch('/projects/1', {}), 403, 'api_key_not_allowed')
    }
    assert.deepEqual(await dump(database), before)
  })

  test('is a dry run', async () => {
    const { id } = await make.makeProject()
    const [owner] = (await admin.get(`/projects/${id}/members`)).body.data
    const before = await dump(database)
    const refusals = [
      await admin.delete(`/projects/${id}/members/${owner.id}?dry_run=true`, { reason }),
      await admin.patch('/projects/4711?dry_run=true', { name: 'Acme' }),
      await admin.patch(`/projects/${id}?dry_run=true`, { plan_id: 4711 }),
      await admin.patch(`/projects/${id}?dry_run=true`, { colour: 'red' }),
      await admin.patch(`/projects/${id}?dry_run=true`, { name: 'Acme' }, { 'if-match': '"4711"' }),
    ]
    assert.deepEqual(
      refusals.map(({ status }) => status),
      [409, 404, 422, 422, 412],
    )
    assert.deepEqual(await dump(database), before)
  })

  test('is a malformed or rate-limited request', async () => {
    const limited = await startApi(database, { POSTERN_REQUESTS_PER_MINUTE_PER_USER: '2' })
    const busy = new Client(limited.url, await limited.tokenOf(admin.email))
    const before = await dump(database)
    assertProblem(await admin.patch('/projects/1e3', { name: 'Acme' }), 400, 'invalid_parameter')
    assertProblem(await admin.patch('/projects/1?dryrun=true', { name: 'Acme' }), 400, 'invalid_parameter')
    assertProblem(await admin.patch('/projects/1', 'x'.repeat(70_000)), 413, 'body_too_large')
    const text = await admin.patch('/projects/1', {}, { 'content-type': 'text/plain' })
    assertProblem(text, 415, 'unsupported_media_type')
    for (const status of [200, 200]) assert.equal((await busy.get('/plans')).status, status)
    assertProblem(await busy.patch('/projects/4711', { name: 'Acme' }), 429, 'rate_limited')
    assert.deepEqual(await dump(database), before)
  })

  test('is a read of a missing resource, or an unsupported method', async () => {
    const headers = { authorization: `Bearer ${await api.tokenOf(admin.email)}` }
    const before = await dump(database)
    for (const method of ['GET', 'HEAD', 'PUT']) {
      for (const path of ['/projects/4711', '/plans/4711', '/users/4711', '/nothing']) {
        const { status } = await fetch(`${api.url}/v1/admin${path}`, { method, headers })
        assert.equal(status, method === 'PUT' && path !== '/nothing' ? 405 : 404, `${method} ${path}`)
      }
    }
    assert.deepEqual(await dump(database), before)
  })

  test('is a successful mutation', async () => {
    const colleague = await signedIn(api)
    const { id } = await make.makeProject()
    assert.equal((await colleague.patch(`/projects/${id}`, { name: 'Acme' })).status, 200)
    assert.equal((await colleague.patch(`/projects/${id}`, { name: 'Acme' })).status, 200)
    assert.deepEqual(await countedOf(colleague.userId), [])
  })
})

describe('the denial counter', () => {
  test('writes one row per minute for the same denial, even for concurrent requests', async () => {
    const user = await demoted()
    const minute = async () => Math.floor((await databaseNow(database)).getTime() / 60_000)
    const before = await minute()
    const refused = await Promise.all(Array.from({ length: 60 }, () => user.get('/plans')))
    for (const answer of refused) assertProblem(answer, 403, 'admin_required')
    const minutes = (await minute()) - before + 1
    const rows = await minutesOf(user.userId)
    assert.ok(rows.length <= minutes, `${rows.length} rows for ${minutes} minutes`)
    assert.equal(
      rows.reduce((sum, { count }) => sum + count, 0),
      60,
    )
    assert.equal(new Set(rows.map(({ minute }) => minute.getTime())).size, rows.length)
    const last = await user.get('/plans')
    assert.equal((await minutesOf(user.userId)).at(-1)?.last_request_id, requestIdOf(last))
  })

  test('counts users separately, and records the project of the last denial', async () => {
    const [one, other] = [await signedIn(api), await signedIn(api)]
    const [a, b] = [await make.makeProject(), await make.makeProject()]
    for (const [client, project, times] of [
      [one, a, 3],
      [one, b, 2],
      [other, a, 1],
    ] as const) {
      for (let sent = 0; sent < times; sent++) {
        assertProblem(
          await client.patch(`/projects/${project.id}`, { plan_id: 4711 }),
          422,
          'validation_failed',
        )
      }
    }
    const rest = { operation: 'projects.edit', error: 'validation_failed' }
    assert.deepEqual(await countedOf(one.userId), [{ ...rest, project_id: b.id, count: 5 }])
    assert.deepEqual(await countedOf(other.userId), [{ ...rest, project_id: a.id, count: 1 }])
  })

  test('starts a new row with each minute of the database clock', async () => {
    const aging = await testDatabase()
    const first = await startApi(aging)
    const { userId, email } = await first.makeAdmin()
    const name = new URL(aging.url).pathname.slice(1)
    const offsets = ['0', '1 minute', '2 minutes']
    for (const offset of offsets) {
      // A database setting applies to connections opened afterwards.
      await aging.query(`alter database ${name} set postern.clock_offset = '${offset}'`)
      const later = await startApi(aging)
      const client = new Client(later.url, await later.tokenOf(email))
      for (const path of ['/users/4711', '/users/4712']) {
        assertProblem(await client.patch(path, { role: 'user', reason }), 404, 'not_found')
      }
    }
    const rows = await aging.query<{ minute: Date; count: number }>(
      'select minute, count from control.denials where actor_id = $1 order by minute',
      [userId],
    )
    assert.ok(rows.length >= offsets.length, `${rows.length} rows`)
    for (const { minute } of rows) assert.equal(minute.getTime() % 60_000, 0)
    assert.equal(
      rows.reduce((sum, { count }) => sum + count, 0),
      offsets.length * 2,
    )
  })

  test('does not affect the response if it fails', async () => {
    const user = await demoted()
    await database.query(`
      create function public.refuse() returns trigger language plpgsql as
        $$ begin raise exception 'no more room'; end $$;
      create trigger refuse before insert on control.denials for each row execute function public.refuse()`)
    try {
      const refused = await user.get('/plans')
      assertProblem(refused, 403, 'admin_required')
      const id = requestIdOf(refused)
      assert.ok(
        api.logLines.some(
          (line) => line.includes(id) && line.includes('denied request could not be recorded'),
        ),
      )
    } finally {
      await database.query('drop trigger refuse on control.denials')
    }
    assert.deepEqual(await countedOf(user.userId), [])
  })
})
