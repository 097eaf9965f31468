import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditRowOf } from '../../../testing/expectations/audit-row.ts'
import { assertProblem } from '../../../testing/expectations/problem.ts'
import { fixtures } from '../../../testing/fixtures/fixtures.ts'
import { inDays } from '../../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { revertDue } from './due.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makePlan } = fixtures(database, admin)
const db = openDatabase(database, { poolSize: 8 }).as('admin')
const reason = 'A trial of the larger plan'

const edit = (id: number, change: object) => admin.patch(`/projects/${id}`, { ...change, reason })
const show = async (id: number) => (await admin.get(`/projects/${id}`)).body
const reversalsOf = async (id: number) => (await admin.get(`/projects/${id}/reversals`)).body.data
const revertedOf = async (id: number) =>
  (await admin.get(`/audit?project_id=${id}&operation=projects.revert`)).body.data

/** As if the time had passed. */
const expire = (id: number) =>
  database.query(
    `update control.reversals set expires_at = postern.now() - interval '1 second' where project_id = $1`,
    [id],
  )

describe('a temporary override', () => {
  test('returns to the original value, once, with an audit row that names its own', async () => {
    const [project, plan] = [await makeProject(), await makePlan()]
    const answer = await edit(project.id, { admin_plan_id: plan.id, expires_at: inDays(1) })
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.body.admin_plan_id, plan.id)
    const [reversal, ...more] = await reversalsOf(project.id)
    assert.deepEqual(more, [])
    assert.deepEqual([reversal.field, reversal.original, reversal.override], ['admin_plan_id', null, plan.id])
    const [own] = (await admin.get(`/audit?project_id=${project.id}&limit=1`)).body.data
    assert.equal(reversal.audit_id, own.id)
    assert.equal(await revertDue(db), 0)

    await expire(project.id)
    const counts = await Promise.all(Array.from({ length: 4 }, () => revertDue(db)))
    assert.equal(
      counts.reduce((sum, count) => sum + count),
      1,
    )
    assert.equal((await show(project.id)).admin_plan_id, null)
    assert.deepEqual(await reversalsOf(project.id), [])
    const [row, ...others] = await revertedOf(project.id)
    assert.deepEqual(others, [])
    assert.deepEqual(
      [row.actor_kind, row.before.admin_plan_id, row.after.admin_plan_id],
      ['system', plan.id, null],
    )
    assert.match(row.reason, new RegExp(`audit entry ${own.id} expired`))
  })

  test('over another keeps the original value', async () => {
    const project = await makeProject()
    const [first, second] = [await makePlan(), await makePlan()]
    await edit(project.id, { admin_plan_id: first.id, expires_at: inDays(1) })
    await edit(project.id, { admin_plan_id: second.id, expires_at: inDays(2) })
    const [{ original, override }] = await reversalsOf(project.id)
    assert.deepEqual([original, override], [null, second.id])
    await expire(project.id)
    assert.equal(await revertDue(db), 1)
    assert.equal((await show(project.id)).admin_plan_id, null)
  })

  test('is permanent if the field is changed again, or the reversal deleted', async () => {
    const [project, other] = [await makeProject(), await makeProject()]
    const later = { expires_at: inDays(1) }
    await edit(project.id, { admin_subscription_status: 'active', ...later })
    const answer = await edit(project.id, { admin_subscription_status: 'paused' })
    const row = (await auditRowOf(database, answer)) ?? assert.fail()
    const [related] = row.related as { resource: string; after: unknown }[]
    assert.deepEqual([related?.resource, related?.after], ['reversal', null])
    assert.deepEqual(await reversalsOf(project.id), [])

    await edit(other.id, { allow_service_mta: true, ...later })
    const [reversal] = await reversalsOf(other.id)
    const path = `/projects/${other.id}/reversals/${reversal.id}`
    assertProblem(await admin.delete(path, {}), 422, 'reason_required')
    assert.equal((await admin.delete(path, { reason })).status, 204)
    assert.equal(await revertDue(db), 0)
    assert.equal((await show(other.id)).allow_service_mta, true)
  })

  test('is permanent if the same value is sent again without an expiry', async () => {
    const { id } = await makeProject()
    await edit(id, { allow_service_mta: true, expires_at: inDays(1) })
    assertProblem(await admin.patch(`/projects/${id}`, { allow_service_mta: true }), 422, 'reason_required')
    const answer = await edit(id, { allow_service_mta: true })
    assert.ok(await auditRowOf(database, answer))
    assert.deepEqual(await reversalsOf(id), [])
  })

  test('of the score restores the offset', async () => {
    const project = await makeProject()
    await edit(project.id, { reputation_score: 90 })
    await edit(project.id, { reputation_score: 20, expires_at: inDays(1) })
    await database.query('update control.project_stats set computed_score = 70 where project_id = $1', [
      project.id,
    ])
    await expire(project.id)
    assert.equal(await revertDue(db), 1)
    assert.equal((await show(project.id)).reputation_score, 60)
  })

  test('may restore a plan that is inactive by now', async () => {
    const project = await makeProject()
    const [old, trial] = [await makePlan(), await makePlan()]
    await edit(project.id, { admin_plan_id: old.id })
    await edit(project.id, { admin_plan_id: trial.id, expires_at: inDays(1) })
    await admin.patch(`/plans/${old.id}`, { is_active: false })
    await expire(project.id)
    assert.equal(await revertDue(db), 1)
    assert.equal((await show(project.id)).admin_plan_id, old.id)
  })

  test('is kept, with a record, if the value was changed in another way', async () => {
    const project = await makeProject()
    await edit(project.id, { allow_service_mta: true, expires_at: inDays(1) })
    await database.query('update control.projects set allow_service_mta = false where id = $1', [project.id])
    await expire(project.id)
    assert.equal(await revertDue(db), 1)
    const [row] = await revertedOf(project.id)
    assert.match(row.reason, /the value has changed and is kept/)
    assert.deepEqual(await reversalsOf(project.id), [])
  })

  test('can be moved to another time', async () => {
    const project = await makeProject()
    await edit(project.id, { allow_service_mta: true, expires_at: inDays(1) })
    const moved = inDays(3)
    assertProblem(
      await admin.patch(`/projects/${project.id}`, { allow_service_mta: true, expires_at: moved }),
      422,
      'reason_required',
    )
    const answer = await edit(project.id, { allow_service_mta: true, expires_at: moved })
    const [{ expires_at }] = await reversalsOf(project.id)
    assert.equal(expires_at, new Date(moved).toISOString())
    assert.ok(await auditRowOf(database, answer))
  })
})

describe('expires_at in projects.edit', () => {
  test('ends a lock', async () => {
    const project = await makeProject()
    const at = inDays(1)
    await edit(project.id, { is_locked: true, expires_at: at })
    const [{ kind, expires_at }] = (await admin.get(`/projects/${project.id}/interventions`)).body.data
    assert.deepEqual([kind, expires_at], ['lock', new Date(at).toISOString()])
    assert.deepEqual(await reversalsOf(project.id), [])
  })

  const refused: [what: string, change: object][] = [
    ['an unlock', { is_locked: false }],
    ['an unlock with an override', { is_locked: false, allow_service_mta: true }],
    ['a name', { name: 'Other' }],
    ['nothing', {}],
  ]
  for (const [what, change] of refused) {
    test(`is rejected with ${what}`, async () => {
      const { id } = await makeProject()
      assertProblem(await edit(id, { ...change, expires_at: inDays(1) }), 422, 'validation_failed')
    })
  }

  test('is rejected if it is past', async () => {
    const { id } = await makeProject()
    const answer = await edit(id, { allow_service_mta: true, expires_at: '2020-01-01T00:00:00Z' })
    assertProblem(answer, 422, 'validation_failed')
  })

  test('is shown in the preview', async () => {
    const { id } = await makeProject()
    const change = { allow_service_mta: true, expires_at: inDays(1) }
    const { body } = await admin.patch(`/projects/${id}?dry_run=true`, change)
    assert.ok(
      body.effects.some((effect: string) => /^At .*, allow_service_mta returns to false\.$/.test(effect)),
    )
  })
})
