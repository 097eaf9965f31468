import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { adminDeps } from '../../context/admin-deps.ts'
import { system } from '../../core/control/audit/record.ts'
import type { Db } from '../../platform/db/db.ts'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { insertProjects } from '../../testing/fixtures/project-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, Client, signedIn } from '../../testing/harness/client.ts'
import { CookieJar } from '../../testing/harness/cookie-jar.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { watchRows } from '../../testing/harness/dump.ts'
import { totpCode } from '../../testing/harness/totp.ts'
import { startIssuer } from '../../testing/peers/issuer.ts'
import { evaluate } from './evaluate.ts'

const database = await testDatabase()
const issuer = await startIssuer()
const api = await startApi(database, {
  POSTERN_OIDC_ISSUERS: JSON.stringify([issuer.configuration]),
})
const admin = await signedIn(api)
const { makePlan, makeProject } = fixtures(database, admin)
const reason = 'Spam wave'
const lock = { operation: 'projects.edit', body: { is_locked: true } }

const start = (body: object): Promise<Answer> => admin.post('/bulk', { ...lock, reason, ...body })
const preview = (body: object): Promise<Answer> => admin.post('/bulk?dry_run=true', { ...lock, ...body })

/** An administrator can have one running bulk action. */
async function started(body: object): Promise<{ id: string; matched: number }> {
  const answer = await start(body)
  assert.equal(answer.status, 202, answer.text)
  await endAll()
  return answer.body
}

const endAll = () =>
  database.query('update control.bulk_actions set finished_at = now() where finished_at is null')

const itemsOf = async (id: string): Promise<number[]> =>
  (
    await database.query<{ project_id: string }>(
      'select project_id from control.bulk_items where bulk_id = $1 order by project_id',
      [id],
    )
  ).map(({ project_id }) => Number(project_id))

describe('bulk.create', () => {
  test('stores the selected projects, and changes none of them', async () => {
    const ids = await insertProjects(database, 3)
    const answer = await start({ ids: ids.toReversed() })
    assert.equal(answer.status, 202, answer.text)
    const { id, created_at, updated_at, ...rest } = answer.body
    assert.deepEqual(rest, {
      ...{ operation: 'projects.edit', filter: null, body: { is_locked: true }, reason },
      ...{ started_by: { id: admin.userId, email: admin.email }, status: 'running', stopped_because: null },
      ...{ matched: 3, changed: 0, unchanged: 0, refused: 0, finished_at: null },
    })
    assert.equal(answer.headers.get('location'), `/v1/admin/bulk/${id}`)
    assert.deepEqual(await itemsOf(id), ids)
    const shown = await admin.get(`/bulk/${id}`)
    assert.deepEqual(shown.body, { ...answer.body, refusals: [] })
    assert.deepEqual((await admin.get('/bulk')).body.data[0], answer.body)
    const row = (await auditRowOf(database, answer)) ?? assert.fail()
    assert.deepEqual(
      [row.operation, row.project_id, row.reason, row.after],
      [
        'bulk.create',
        null,
        reason,
        {
          ...{ operation: 'projects.edit', filter: null, body: { is_locked: true } },
          ...{ matched: 3, status: 'running' },
        },
      ],
    )
    await endAll()
  })

  test('applies a filter once, at the start', async () => {
    const plan = await makePlan()
    const matching = [await makeProject({ plan_id: plan.id }), await makeProject({ plan_id: plan.id })]
    await makeProject()
    const { id } = await started({ filter: { plan_id: plan.id, locked: false } })
    await makeProject({ plan_id: plan.id })
    assert.deepEqual(
      await itemsOf(id),
      matching.map((project) => project.id),
    )
    assert.deepEqual((await admin.get(`/bulk/${id}`)).body.filter, { plan_id: plan.id, locked: false })
  })

  test('reads a filter that matches many projects page by page', async () => {
    const ids = await insertProjects(database, 2_500)
    const [{ plan_id } = assert.fail()] = await database.query<{ plan_id: string }>(
      'select plan_id from control.projects where id = $1',
      [ids[0]],
    )
    const { id } = await started({ filter: { plan_id: Number(plan_id) } })
    assert.deepEqual(await itemsOf(id), ids)
  })

  test('takes either ids or a filter, and rejects a filter that matches nothing', async () => {
    const rows = await watchRows(database, { except: ['control.denials'] })
    assertProblem(await start({}), 422, 'validation_failed')
    assertProblem(await start({ ids: [1], filter: {} }), 422, 'validation_failed')
    assertProblem(await start({ ids: [] }), 422, 'validation_failed')
    assertProblem(await start({ ids: [1, 1] }), 422, 'validation_failed')
    assertProblem(
      await start({ ids: Array.from({ length: 10_001 }, (_, id) => id) }),
      422,
      'validation_failed',
    )
    assertProblem(await start({ filter: { plan_id: 987_654_321 } }), 422, 'validation_failed')
    assertProblem(await start({ filter: { sort: 'name' } }), 422, 'validation_failed')
    await rows.assertUntouched()
  })

  test('accepts only the listed operations and the fields of their bodies', async () => {
    const ids = [1]
    const rows = await watchRows(database, { except: ['control.denials'] })
    for (const [operation, body, named] of [
      ['projects.create', {}, 'operation'],
      ['endpoints.delete', {}, 'operation'],
      ['projects.edit', {}, 'body'],
      ['projects.edit', { name: 'New' }, 'body.name'],
      ['projects.edit', { user_id: 1 }, 'body.user_id'],
      ['projects.edit', { is_locked: 'yes' }, 'body.is_locked'],
      ['projects.edit', { is_locked: true, reason }, 'body.reason'],
      ['queue.hold', { per_minute: 1 }, 'body.per_minute'],
      ['queue.release', { per_minute: 0 }, 'body.per_minute'],
      ['interventions.create', { kind: 'mute' }, 'body.kind'],
    ] as const) {
      const answer = await start({ ids, operation, body })
      assertProblem(answer, 422, 'validation_failed')
      assert.match(answer.body.message, new RegExp(`"${named}"`), operation)
    }
    await rows.assertUntouched()
  })

  test('allows one running bulk action per administrator, also for concurrent requests', async () => {
    const ids = await insertProjects(database, 2)
    const answers = await Promise.all(Array.from({ length: 6 }, () => start({ ids })))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [202, 409, 409, 409, 409, 409])
    assertProblem(await preview({ ids }), 409, 'request_in_progress')
    const colleague = await signedIn(api)
    assert.equal((await colleague.post('/bulk', { ...lock, ids, reason })).status, 202)
    await endAll()
  })

  test('returns the stored response to a repeated request, even if the filter no longer matches', async () => {
    const plan = await makePlan()
    const { id } = await makeProject({ plan_id: plan.id })
    const send = () =>
      admin.post(
        '/bulk',
        { ...lock, filter: { plan_id: plan.id, locked: false }, reason },
        { 'idempotency-key': 'bulk-repeated' },
      )
    const first = await send()
    assert.equal(first.status, 202, first.text)
    await admin.patch(`/projects/${id}`, { is_locked: true, reason })
    assert.equal((await send()).text, first.text)
    await endAll()
  })

  test('limits what is started in 24 hours', async () => {
    const ids = await insertProjects(database, 1)
    await started({ ids })
    await database.query('update control.bulk_actions set matched = 1000000')
    assertProblem(await start({ ids }), 422, 'limit_exceeded')
    await database.query(`update control.bulk_actions set created_at = created_at - interval '25 hours'`)
    await started({ ids })
  })
})

describe('the preview of bulk.create', () => {
  test('counts what would change, stay and be refused, with samples, and writes nothing', async () => {
    const ids = await insertProjects(database, 24)
    await admin.patch(`/projects/${ids[3]}`, { is_locked: true, reason })
    const rows = await watchRows(database)
    const { body } = await preview({ ids: [...ids, 987_654_321] })
    await rows.assertUntouched()
    const { sample, ...bulk } = body.bulk
    assert.deepEqual(bulk, {
      ...{ matched: 25, evaluated: 25, is_complete: true, changed: 23, unchanged: 1, refused: 1 },
      refusals: [{ error: 'not_found', message: 'There is no project 987654321.', count: 1 }],
    })
    assert.deepEqual(
      sample.map(({ project_id }: { project_id: number }) => project_id),
      ids.filter((id) => id !== ids[3]).slice(0, 20),
    )
    const single = await admin.patch(`/projects/${ids[0]}?dry_run=true`, { is_locked: true })
    const { changes, effects, warnings } = single.body
    assert.deepEqual(sample[0], {
      ...{ project_id: ids[0], project_name: 'Project 1' },
      ...{ changes, effects, warnings },
    })
    assert.deepEqual(body.effects, [
      'The operation projects.edit is performed on 25 projects.',
      'Projects changed: 23, unchanged: 1, refused: 1.',
    ])
    assert.equal(body.reason_required, true)
  })

  test('holds at most four connections, however many administrators request one', async () => {
    const ids = await insertProjects(database, 8)
    const given = adminDeps(api.context)
    let [now, most] = [0, 0]
    const dryRun: Db['dryRun'] = async (work) => {
      most = Math.max(most, ++now)
      return given.db.dryRun(work).finally(() => now--)
    }
    const db = new Proxy(given.db, {
      get: (target, name: keyof Db) => (name === 'dryRun' ? dryRun : target[name].bind(target)),
    })
    const previews = await Promise.all(
      [1, 2, 3].map((id) =>
        evaluate(
          { ...given, db },
          { actor: { ...system, id }, requestId: 'r', operation: 'queue.hold', body: {} },
          ids,
        ),
      ),
    )
    assert.deepEqual(
      previews.map(({ changed, is_complete }) => [changed, is_complete]),
      [1, 2, 3].map(() => [8, true]),
    )
    assert.equal(most, 4)
  })
})

const [project = 0] = await insertProjects(database, 1)

describe('the second factor', () => {
  const body = { ...lock, ids: [project], reason }

  /** A client with the token of a session whose second factor is that old. */
  async function withSession(age: string): Promise<Client> {
    const { email, userId, password, totpUri } = await api.makeAdmin()
    const browser = new CookieJar(api.url)
    await browser.post('/v1/auth/sign-in', { email, password })
    await browser.post('/v1/auth/totp/code', { code: totpCode(totpUri) })
    await database.query(
      'update control.sessions set second_factor_at = second_factor_at - $2::interval where user_id = $1',
      [userId, age],
    )
    const { token } = (await (await browser.post('/v1/auth/token')).json()) as { token: string }
    return new Client(api.url, token)
  }

  test('within the last ten minutes is required to start or resume, but not for a dry run or to stop', async () => {
    const old = await withSession('10 minutes')
    const refused = await old.post('/bulk', body)
    assertProblem(refused, 401, 'unauthenticated')
    assert.match(refused.body.message, /Sign in again/)
    assert.equal((await old.post('/bulk?dry_run=true', body)).status, 200)
    const { id } = (await admin.post('/bulk', body)).body
    assert.equal((await old.post(`/bulk/${id}/stop`, { reason })).status, 200)
    assertProblem(await old.post(`/bulk/${id}/resume`, { reason }), 401, 'unauthenticated')
    assert.equal((await old.get(`/bulk/${id}`)).body.status, 'stopped')
    assert.equal((await old.post(`/bulk/${id}/resume?dry_run=true`, { reason })).status, 200)

    const recent = await withSession('9 minutes')
    assert.equal((await recent.post('/bulk', body)).status, 202)
  })

  test('of an external issuer counts from the time of authentication', async () => {
    const { email } = await api.grantAdmin()
    await database.query(
      'insert into control.external_logins (issuer, subject, user_id) select $1, $2, id from control.users where email = $2',
      [issuer.configuration.issuer, email],
    )
    const statusWith = async (claims: object) =>
      (await new Client(api.url, await issuer.sign({ sub: email, ...claims })).post('/bulk', body)).status
    const now = Math.floor(Date.now() / 1000)
    assert.equal(await statusWith({}), 401)
    assert.equal(await statusWith({ auth_time: now - 601 }), 401)
    assert.equal(await statusWith({ auth_time: 'now' }), 401)
    assert.equal(await statusWith({ auth_time: now + 3600 }), 401)
    assert.equal(await statusWith({ auth_time: now - 500 }), 202)
  })
})
