import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { adminDeps } from '../../context/admin-deps.ts'
import { purgeBulkActions } from '../../core/control/bulk/bulk.ts'
import { PosternError } from '../../platform/errors.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { insertProjects } from '../../testing/fixtures/project-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Client, signedIn } from '../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'
import type { AdminDeps } from '../operation.ts'
import { performBulkActions } from './perform-bulk.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeIntervention, makePlan, makeProject } = fixtures(database, admin)
const reason = 'Spam wave'

const deps = { ...adminDeps(api.context), log: api.context.log }
const work = (changes: Partial<AdminDeps> = {}, signal = new AbortController().signal) =>
  performBulkActions({ ...deps, ...changes }, signal)

async function start(body: object, client: Client = admin): Promise<string> {
  const answer = await client.post('/bulk', { reason, ...body })
  assert.equal(answer.status, 202, answer.text)
  return answer.body.id
}

const show = async (id: string) => (await admin.get(`/bulk/${id}`)).body

interface AuditRow {
  project_id: string
  operation: string
  actor_id: string
  reason: string
}

const auditOf = (id: string): Promise<AuditRow[]> =>
  database.query(
    'select project_id, operation, actor_id, reason from control.audit where bulk_id = $1 order by project_id',
    [id],
  )

const lockedOf = async (ids: readonly number[]): Promise<number[]> =>
  (
    await database.query<{ id: string }>(
      'select id from control.projects where id = any($1) and is_locked order by id',
      [ids],
    )
  ).map(({ id }) => Number(id))

/** Ends the work after this many changes. */
function endingAfter(changes: number): [Partial<AdminDeps>, AbortSignal] {
  const ending = new AbortController()
  let left = changes
  const { db } = deps
  const counting: AdminDeps['db'] = {
    ...{ read: (one) => db.read(one), dryRun: (one) => db.dryRun(one) },
    async transaction(one) {
      const result = await db.transaction(one)
      if (--left === 0) ending.abort()
      return result
    },
  }
  return [{ db: counting }, ending.signal]
}

describe('a bulk action', () => {
  test('performs the operation on each project, with one audit row each, as the preview says', async () => {
    const ids = await insertProjects(database, 10)
    await admin.patch(`/projects/${ids[4]}`, { is_locked: true, reason })
    const body = { operation: 'projects.edit', ids: [...ids, 987_654_321], body: { is_locked: true } }
    const { bulk } = (await admin.post('/bulk?dry_run=true', body)).body
    const id = await start(body)
    await work()
    const { status, matched, changed, unchanged, refused, refusals, finished_at } = await show(id)
    assert.deepEqual([status, matched, changed, unchanged, refused], ['finished', 11, 9, 1, 1])
    assert.deepEqual(
      [bulk.matched, bulk.changed, bulk.unchanged, bulk.refused],
      [matched, changed, unchanged, refused],
    )
    assert.ok(finished_at)
    assert.deepEqual(refusals, [
      {
        ...{ project_id: 987_654_321, project_name: null },
        ...{ error: 'not_found', message: 'There is no project 987654321.' },
      },
    ])
    assert.deepEqual(await lockedOf(ids), ids)
    assert.deepEqual(
      await auditOf(id),
      ids
        .filter((one) => one !== ids[4])
        .map((one) => ({
          ...{ project_id: String(one), operation: 'projects.edit', actor_id: String(admin.userId) },
          reason,
        })),
    )
    const [entry] = (await admin.get(`/audit?project_id=${ids[0]}`)).body.data
    assert.equal(entry.bulk_id, id)
    assertProblem(await admin.post(`/bulk/${id}/stop`, { reason }), 409, 'already_ended')
    assertProblem(await admin.post(`/bulk/${id}/resume`, { reason }), 409, 'already_ended')
  })

  test('can hold and release mail, start interventions and change plans', async () => {
    const ids = await insertProjects(database, 2)
    const [first = 0] = ids
    const plan = await makePlan()
    for (const { operation, body, shown, at } of [
      { operation: 'queue.hold', body: {}, at: '/queue', shown: { is_held: true } },
      { operation: 'queue.release', body: {}, at: '/queue', shown: { is_held: false } },
      {
        operation: 'projects.edit',
        body: { admin_plan_id: plan.id },
        at: '',
        shown: { admin_plan_id: plan.id },
      },
      { operation: 'interventions.create', body: { kind: 'lock' }, at: '', shown: { is_locked: true } },
    ]) {
      const id = await start({ operation, ids, body })
      await work()
      assert.equal((await show(id)).changed, 2, operation)
      const project = (await admin.get(`/projects/${first}${at}`)).body
      for (const [field, value] of Object.entries(shown)) assert.equal(project[field], value)
    }
  })

  test('continues after a rejected project, and says why it was rejected', async () => {
    const ids = await insertProjects(database, 3)
    for (let made = 0; made < 20; made++) await makeIntervention(ids[1] ?? 0)
    const body = { operation: 'interventions.create', ids, body: { kind: 'warn' } }
    const { bulk } = (await admin.post('/bulk?dry_run=true', body)).body
    const id = await start(body)
    await work()
    const { changed, refused, refusals } = await show(id)
    assert.deepEqual([changed, refused], [2, 1])
    assert.deepEqual([bulk.changed, bulk.refused], [2, 1])
    assert.deepEqual(
      [refusals[0].project_id, refusals[0].project_name, refusals[0].error],
      [ids[1], 'Project 2', 'limit_exceeded'],
    )
    assert.equal(bulk.refusals[0].message, refusals[0].message)
  })

  test('stops on request, and continues with the projects that are left', async () => {
    const ids = await insertProjects(database, 6)
    const id = await start({ operation: 'projects.edit', ids, body: { is_locked: true } })
    await work(...endingAfter(2))
    assert.equal((await show(id)).changed, 2)
    const stopped = await admin.post(`/bulk/${id}/stop`, { reason: 'Wrong plan' })
    assert.deepEqual([stopped.body.status, stopped.body.stopped_because], ['stopped', 'administrator'])
    await work()
    assert.deepEqual(await lockedOf(ids), ids.slice(0, 2))

    const colleague = await signedIn(api)
    const resumed = await colleague.post(`/bulk/${id}/resume`, { reason: 'It was right' })
    assert.deepEqual([resumed.body.status, resumed.body.stopped_because], ['running', null])
    await work()
    const rows = await auditOf(id)
    assert.deepEqual(rows.length, 6)
    assert.deepEqual(new Set(rows.map(({ actor_id }) => actor_id)), new Set([String(admin.userId)]))
    assert.equal((await show(id)).status, 'finished')
  })

  test('cannot be resumed while another one of the same administrator is running', async () => {
    const ids = await insertProjects(database, 1)
    const lock = { operation: 'projects.edit', ids, body: { is_locked: true } }
    const first = await start(lock)
    await admin.post(`/bulk/${first}/stop`, { reason })
    const second = await start(lock)
    assertProblem(await admin.post(`/bulk/${first}/resume`, { reason }), 409, 'request_in_progress')
    await work()
    assert.equal((await show(second)).status, 'finished')
    assert.equal((await admin.post(`/bulk/${first}/resume`, { reason })).status, 200)
    await work()
    assert.equal((await show(first)).unchanged, 1)
  })

  for (const [what, change] of [
    ['loses the role', { role: 'user' }],
    ['is disabled', { is_active: false }],
    ['has only limited rights', { rights: 'support' }],
  ] as const) {
    test(`stops if the administrator who started it ${what}`, async () => {
      const starter = await signedIn(api)
      const ids = await insertProjects(database, 5)
      const id = await start({ operation: 'projects.edit', ids, body: { is_locked: true } }, starter)
      await work(...endingAfter(2))
      assert.equal((await admin.patch(`/users/${starter.userId}`, { ...change, reason })).status, 200)
      await work()
      const { status, stopped_because, changed } = await show(id)
      assert.deepEqual([status, stopped_because, changed], ['stopped', 'rights', 2])
      assert.deepEqual(await lockedOf(ids), ids.slice(0, 2))
      assert.equal((await auditOf(id)).length, 2)
      const { data } = (await admin.get(`/audit?operation=bulk.interrupt&resource=bulk_action:${id}`)).body
      assert.equal(data.length, 1)
      assert.deepEqual([data[0].before.status, data[0].after.status], ['running', 'stopped'])
      assert.match(data[0].reason, /may no longer perform projects.edit/)

      // Resumed without the right, it stops again before the next change.
      assert.equal((await admin.post(`/bulk/${id}/resume`, { reason })).status, 200)
      await work()
      assert.equal((await show(id)).status, 'stopped')
      await admin.patch(`/users/${starter.userId}`, {
        role: 'admin',
        rights: 'full',
        is_active: true,
        reason,
      })
      await admin.post(`/bulk/${id}/resume`, { reason })
      await work()
      assert.deepEqual(await lockedOf(ids), ids)
      assert.equal((await auditOf(id)).length, 5)
    })
  }

  test('performed by several workers changes each project once', async () => {
    const ids = await insertProjects(database, 40)
    const id = await start({ operation: 'interventions.create', ids, body: { kind: 'warn' } })
    const workers = Array.from({ length: 4 }, () => openDatabase(database).as('admin'))
    for (let round = 0; (await show(id)).status === 'running'; round++) {
      assert.ok(round < 100, 'the bulk action makes no progress')
      await Promise.all(workers.map((db) => work({ db })))
    }
    assert.deepEqual(
      (await auditOf(id)).map(({ project_id }) => Number(project_id)),
      ids,
    )
    const [{ count } = { count: 0 }] = await database.query<{ count: number }>(
      'select count(*)::int from control.interventions where project_id = any($1)',
      [ids],
    )
    assert.equal(count, 40)
  })

  test('waits for projects whose mail database is unavailable, and performs the others', async () => {
    const ids = await insertProjects(database, 4)
    const id = await start({ operation: 'queue.hold', ids, body: {} })
    const mailDbFor: AdminDeps['mailDbFor'] = (projectId) => {
      if (projectId === ids[1]) throw new PosternError('unavailable', 'The cell is down.')
      return deps.mailDbFor(projectId)
    }
    await assert.rejects(work({ mailDbFor }), /The cell is down/)
    assert.deepEqual([(await show(id)).status, (await show(id)).changed], ['running', 3])
    await work()
    assert.deepEqual([(await show(id)).status, (await show(id)).changed], ['finished', 4])
  })

  test('refuses a project after an unexpected error, and performs the others', async () => {
    const ids = await insertProjects(database, 3)
    const id = await start({ operation: 'queue.hold', ids, body: {} })
    const mailDbFor: AdminDeps['mailDbFor'] = (projectId) => {
      if (projectId === ids[1]) throw new TypeError('a bug')
      return deps.mailDbFor(projectId)
    }
    await work({ mailDbFor })
    const { status, changed, refusals } = await show(id)
    assert.deepEqual([status, changed, refusals[0].error], ['finished', 2, 'internal_error'])
    assert.doesNotMatch(refusals[0].message, /a bug/)
  })

  test('is deleted 90 days after its end', async () => {
    const { id: projectId } = await makeProject()
    const lock = { operation: 'projects.edit', ids: [projectId], body: { is_locked: true } }
    const old = await start(lock)
    await work()
    const young = await start(lock)
    await work()
    const age = (id: string, days: number) =>
      database.query(
        `update control.bulk_actions set updated_at = postern.now() - $2 * interval '1 day' where id = $1`,
        [id, days],
      )
    await age(old, 91)
    await age(young, 89)
    await deps.db.transaction(purgeBulkActions)
    assertProblem(await admin.get(`/bulk/${old}`), 404, 'not_found')
    assert.equal((await admin.get(`/bulk/${young}`)).status, 200)
    const items = await database.query('select from control.bulk_items where bulk_id = $1', [old])
    assert.equal(items.length, 0)
  })
})
